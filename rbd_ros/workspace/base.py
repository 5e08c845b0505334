# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Base of all workspaces: the robot, its buffers, checks of arguments, and errors."""

from collections.abc import Callable
import logging
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import SingularError, StateError
from rbd_ros.kernels.articulated_bodies import PSI_
from rbd_ros.kernels.jit import numba_backend
from rbd_ros.kernels.tree.layout import LANES
from rbd_ros.model.arguments import check_model, finite_vector, mask, vector
from rbd_ros.model.joints import joint_subspace
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import normalize

COLLINEAR = 1e-6    # sine of the angle between two axes of a joint below which they are collinear
BOOL = np.dtype(bool)
_log = logging.getLogger('rbd_ros')

Buffer = TypeVar('Buffer')


class WorkspaceBase:
    """The robot, its buffers and checks of arguments; if ``fresh``, large results are new."""

    robot: np.ndarray    # bodies in blocks, then tau of inverse dynamics; see `kernels.layout`
    _carriers: Callable[..., np.ndarray]    # returns which entries of M may be nonzero

    def __init__(self, model: Model, *, fresh: bool = False) -> None:
        check_model(model)
        if slow := numba_backend.warning():
            _log.warning(slow)
        self._model_of: Callable[[], Model] = lambda: model
        self._nv, self._fresh = model.nv, fresh
        self._zeros = np.zeros(model.nv)
        self._scratch: dict[Callable[..., Any], Any] = {}

    @property
    def model(self) -> Model:
        return self._model_of()

    def __reduce__(self) -> tuple[type, tuple[Model]]:
        # Copies of buffers that are views of each other would be separate arrays.
        return type(self), (self.model,)

    def _kept(self, make: Callable[..., Buffer]) -> Buffer:
        """Return the buffer that ``make``, a function of `scratch`, creates at the first call."""
        buffer = self._scratch.get(make)
        if buffer is None:
            buffer = self._scratch[make] = make(self)
        return buffer

    def _result(self, make: Callable[..., Buffer]) -> Buffer:
        """Return a buffer that may be handed out: new if the workspace is fresh, else kept."""
        if self._fresh:
            return make(self)
        buffer = self._scratch.get(make)      # as `_kept`, without another call
        return self._kept(make) if buffer is None else buffer

    def _moved_joints(self) -> np.ndarray:
        """Return a matrix that is zero wherever G is."""
        return self.model.coordinates.G

    def check(self, **vectors: ArrayLike) -> list[np.ndarray]:
        """Return copies of ``q``, ``v``, ``a`` or ``tau``, given by name, or raise StateError."""
        return [finite_vector(self.model, label, x, positions=label == 'q')
                for label, x in vectors.items()]

    def _mask(self, prescribed: ArrayLike) -> np.ndarray:
        if type(prescribed) is np.ndarray and prescribed.dtype is BOOL:
            return prescribed
        return mask(self.model, 'prescribed', prescribed)

    def _given(self, a: ArrayLike, tau: ArrayLike,
               prescribed: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a and tau, zeros where they are not given, and the mask, all checked."""
        prescribed = mask(self.model, 'prescribed', prescribed)
        a, tau = (vector(self.model, label, x) for label, x in (('a', a), ('tau', tau)))
        a[~prescribed], tau[prescribed] = 0.0, 0.0
        self.check(a=a, tau=tau)
        return a, tau, prescribed

    def _explain(self, **vectors: ArrayLike) -> NoReturn:
        """Raise the error for a result that is not finite."""
        self.check(**vectors)
        if 'q' in vectors:
            normalize(self.model, vectors['q'])
        raise StateError(f"the dynamics of robot '{self.model.name}' are not finite here: "
                         + ', '.join(f'{label} = {x!s}' for label, x in vectors.items()))

    def _explain_accelerations(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                               tau: ArrayLike, prescribed: ArrayLike) -> NoReturn:
        """Raise the error for accelerations that articulated bodies could not compute."""
        a, tau, _ = self._given(a, tau, prescribed)
        self.check(q=q, v=v)
        normalize(self.model, q)
        column = int(self.robot[LANES * PSI_])
        if column > 0:
            self._refuse(column - 1, q)
        self._explain(q=q, v=v, a=a, tau=tau)

    def _explain_forward(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> NoReturn:
        """Do `_explain_accelerations` where none is given."""
        self._explain_accelerations(q, v, self._zeros, tau, np.zeros(self._nv, bool))

    def _refuse(self, column: int, q: ArrayLike) -> NoReturn:
        """Raise the error for a velocity whose acceleration is not defined."""
        name = self.model.velocity_names[column]
        joint, q_slice, _ = next(moving for moving in self.model.moving_joints
                                 if moving[2].start <= column < moving[2].stop)
        S = joint_subspace(joint, np.asarray(q, float)[q_slice])
        if np.linalg.svd(S, compute_uv=False)[-1] < COLLINEAR:
            raise SingularError(
                f"'{name}': axes of the joint '{joint.name}' are in line here, so its "
                'accelerations are not defined: keep away from this position, or make it '
                "'spherical' or 'free', which have no such singularity")
        raise SingularError(
            f"'{name}' moves no inertia, so its acceleration is not defined: give the links that "
            'it carries a mass and an inertia, lock it, or prescribe its acceleration')
