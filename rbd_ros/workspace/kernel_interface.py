# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How arrays of a user reach the kernels and come back: checks, buffers and errors."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
import logging
from typing import Any, NoReturn, TypeVar

import numpy as np
import numpy.typing as npt
from rbd_ros import compiler
from rbd_ros.errors import SingularError, StateError
from rbd_ros.kernels.bodies import BLOCK, CONSTANTS, LANES, NUMBER, PARENT, WRENCH
from rbd_ros.kernels.compiled import NOT_A_VECTOR, prepare
from rbd_ros.kernels.mimics import expand, fold_vector
from rbd_ros.model.configurations import normalize
from rbd_ros.model.joints import joint_subspace
from rbd_ros.model.model import Folding, Model
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.validation import check_model, finite_vector, vector, Wrenches, wrenches

__all__ = ['KernelInterface']

# Sine of the angle between the axes of a joint below which they are in line.
IN_LINE = 1e-6
_log = logging.getLogger('rbd_ros')


Made = TypeVar('Made')


class KernelInterface:
    """
    The arrays of one robot, and the way into the kernels and out again.

    Kernels take float64 vectors only and raise on anything else, and on the first call of all:
    then the vectors are converted and the kernel is made ready for them. They return False if
    something is wrong, and only then are the arguments checked.

    Parameters
    ----------
    model : Model
        The robot.

    Attributes
    ----------
    robot : ndarray
        The bodies in blocks, and what is behind them, see `rbd_ros.kernels.bodies`.

    """

    def __init__(self, model: Model) -> None:
        check_model(model)
        if slow := compiler.warning():
            _log.warning(slow)
        self._model_of: Callable[[], Model] = lambda: model
        bodies = model.tree.robot
        i = np.arange(len(bodies))
        # As `bodies.end` and `bodies.place`, which only kernels can call.
        end = -(-len(bodies) // LANES) * BLOCK
        self.robot = np.zeros(end + len(bodies) - 1)
        self._tau = self.robot[end:]    # of inverse dynamics
        self._places = i + i // LANES * (BLOCK - LANES)
        self.robot[self._columns(0, CONSTANTS)] = bodies
        whole = self.robot.view(np.int64)
        whole[self._places + LANES * NUMBER] = i
        whole[self._places + LANES * PARENT] = self._places[bodies[:, PARENT].astype(int)]
        whole[LANES * PARENT] = len(bodies)
        self._screws, self._folding = model.tree.screws, model.folding
        # Velocities that the kernels count, those of mimicking joints included, and the model's.
        self._n, self._nv = len(bodies) - 1, model.nv
        self._zeros = np.zeros(model.nv)
        self._made: dict[Callable[..., Any], Any] = {}

    @property
    def model(self) -> Model:
        """Return the robot."""
        return self._model_of()

    def __reduce__(self) -> tuple[type, tuple[Model]]:
        # Copies of buffers that are views of each other would be separate arrays.
        return type(self), (self.model,)

    def _columns(self, first: int, number: int, body: slice | int = slice(None)) -> np.ndarray:
        """Return where columns of bodies are in the array `robot`, a row for each body."""
        return self._places[body, None] + LANES * np.arange(first, first + number)

    def _run(self, kernel: Callable[..., Any], labels: Iterable[str],
             vectors: Iterable[npt.ArrayLike], *rest: Any) -> None:
        """Run a kernel on vectors, named by one letter each, and buffers."""
        arguments = vectors
        if self._folding is not None:
            arguments = self._expand(**dict(zip(labels, vectors)))
        try:
            fine = kernel(self.robot, self._screws, *arguments, *rest)
        except NOT_A_VECTOR:
            if self._folding is None:
                arguments = self._convert(**dict(zip(labels, vectors)))
            fine = self._call(kernel, self.robot, self._screws, *arguments, *rest)
        if not fine:
            self._explain(**dict(zip(labels, vectors)))

    @staticmethod
    def _call(kernel: Callable[..., Any], *arguments: Any) -> Any:
        """Run a kernel on arguments that are known to be right, and return what it returns."""
        try:
            return kernel(*arguments)
        except NOT_A_VECTOR:
            prepare(kernel, *arguments)
            return kernel(*arguments)

    # -- Arrays that not every user needs. -------------------------------------------------------

    def _kept(self, make: Callable[..., Made]) -> Made:
        """Return what a function of the workspace makes, made once."""
        made = self._made.get(make)
        if made is None:
            made = self._made[make] = make(self)
        return made

    # Arrays to hand out: here the same ones at every call.
    _result = _kept

    # -- Mimicking joints: coordinates of the model to and from those of the tree. ---------------

    @property
    def _fold(self) -> Folding:
        """Return the folding of a robot whose joints mimic others."""
        assert self._folding is not None
        return self._folding

    def _expand(self, **vectors: npt.ArrayLike) -> tuple[np.ndarray, ...]:
        """Return q and up to three velocities of the tree, mimicking joints included."""
        (room, parts), mimics = self._kept(expanded), self._kept(mimic_table)
        zeros = self._zeros
        try:
            fine = expand(*mimics, *(*vectors.values(), zeros, zeros, zeros)[:4], room)
        except NOT_A_VECTOR:
            arguments = (*mimics, *(*self._convert(**vectors), zeros, zeros, zeros)[:4],
                         room)
            prepare(expand, *arguments)
            fine = expand(*arguments)
        if not fine:
            self.check(**vectors)
        return parts[:len(vectors)]

    def _fold_vector(self, x: np.ndarray) -> np.ndarray:
        """Return torques of the tree folded, in a buffer that is kept."""
        folded = self._kept(folded_vector)
        self._call(fold_vector, self._fold.columns, x, folded)
        return folded

    # -- Errors. ---------------------------------------------------------------------------------

    def _convert(self, **vectors: npt.ArrayLike) -> list[np.ndarray]:
        return [vector(self.model, label, x, positions=label == 'q')
                for label, x in vectors.items()]

    def check(self, **vectors: npt.ArrayLike) -> list[np.ndarray]:
        """Return copies of ``q``, ``v``, ``a`` or ``tau``, given by name, or refuse them."""
        return [finite_vector(self.model, label, x, positions=label == 'q')
                for label, x in vectors.items()]

    def _explain(self, **vectors: npt.ArrayLike) -> NoReturn:
        """Raise the error for a result that is not finite."""
        self.check(**vectors)
        if 'q' in vectors:
            normalize(self.model, vectors['q'])
        raise StateError(f"the dynamics of robot '{self.model.name}' are not finite here: "
                         + ', '.join(f'{label} = {x!s}' for label, x in vectors.items()))

    def _refuse(self, column: int, q: npt.ArrayLike) -> NoReturn:
        """Raise the error for a velocity whose acceleration is not defined."""
        name = self.model.velocity_names[column]
        joint, q_slice, _ = next(moving for moving in self.model.moving_joints
                                 if moving[2].start <= column < moving[2].stop)
        S = joint_subspace(joint, np.asarray(q, float)[q_slice])
        if np.linalg.svd(S, compute_uv=False)[-1] < IN_LINE:
            raise SingularError(
                f"'{name}': axes of the joint '{joint.name}' are in line here, so its "
                'accelerations are not defined: keep away from this position, or make it '
                "'spherical' or 'free', which have none such")
        raise SingularError(
            f"'{name}' moves no inertia, so its acceleration is not defined: give the links that "
            'it carries a mass and an inertia, lock it, or prescribe its acceleration')

    @contextmanager
    def _pushed(self, external_wrenches: Wrenches) -> Iterator[None]:
        """Let wrenches act on links, one force per body in its frame; afterwards none does."""
        tree = self.model.tree
        forces = wrenches(self.model, external_wrenches)
        try:
            for k, wrench in forces.items():
                there = self._columns(WRENCH, 6, tree.link_body[k])
                self.robot[there] += Ad(inverse(tree.link_pose[k])).T @ wrench
            yield
        finally:
            self.robot[self._columns(WRENCH, 6)] = 0.0


# -- What `KernelInterface` keeps. ----------------------------------------------------------------

def mimic_table(w: KernelInterface) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return what the kernels of `rbd_ros.kernels.mimics` need to know about the joints."""
    fold = w._fold
    return (np.column_stack((fold.source, fold.multiplier, fold.offset)), fold.columns,
            w.model.nq, w._nv)


def expanded(w: KernelInterface) -> tuple[np.ndarray, tuple[np.ndarray, ...]]:
    """Return a buffer for q and three velocities of the tree, and its parts."""
    nq, n = len(w._fold.source), w._n
    room = np.zeros(nq + 3 * n)
    return room, tuple(np.split(room, [nq, nq + n, nq + 2 * n]))


def folded_vector(w: KernelInterface) -> np.ndarray:
    """Return a buffer for torques of the model."""
    return np.zeros(w._nv)
