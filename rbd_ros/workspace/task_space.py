# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: the equations of motion seen from one link."""

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import ModelError
from rbd_ros.kernels.bodies import PARENT
from rbd_ros.kernels.task_space import task_space, UNMOVED
from rbd_ros.model.model import Model
from rbd_ros.validation import choice, number
from rbd_ros.workspace.dynamics import DynamicsMethods
from rbd_ros.workspace.kernel_interface import KernelInterface
from rbd_ros.workspace.kinematics import jacobian_rates
from rbd_ros.workspace.results import Frame, FRAMES, TaskSpaceDynamics

__all__ = ['characteristic_length', 'TaskSpaceMethods']

# Share of the way from the root to a link that is the unit of length.
SHARE_OF_WAY = 0.2


def characteristic_length(model: Model, link: str) -> float:
    """
    Return the unit of length in which rotations and translations of a link compare.

    Parameters
    ----------
    model : Model
        The robot.
    link : str
        The link's name.

    Returns
    -------
    float
        A fifth of the way from the root to the link along the joints, m: about the lever of a
        joint in the middle, and where condition numbers of arms are smallest. 1 m where that way
        has no length.

    """
    way, up = 0.0, {joint.child: joint for joint in model.joints}
    while link in up:
        way += float(np.linalg.norm(up[link].placement[:3, 3]))
        link = up[link].parent
    return SHARE_OF_WAY * way if way > 0.0 else 1.0


class TaskSpaceMethods(DynamicsMethods):
    """
    The equations of motion of a link.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._lengths: dict[str, float] = {}

    def _task(self, M: np.ndarray, b: np.ndarray, q: npt.ArrayLike, link: str, length: float,
              limit: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run the kernel of task space on the Jacobian that was computed last."""
        rows, last = self._kept(jacobian_rates)[0], int(self._link_row(link)[0, 0]) - 1
        if self._folding is not None:
            tree, rows, last = rows, self._kept(folded_jacobian), self._nv - 1
            rows[:6, :self._nv] = tree[:6, :self._n] @ self._folding.G
            rows[18, :6] = tree[18, :6]
        work, results = self._kept(task_work), self._kept(task_results)
        status = self._call(task_space, np.ascontiguousarray(M), rows, b, self._kept(ahead), last,
                            length, limit, *work, *results)
        if status == UNMOVED:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it")
        if status > 0:
            self._refuse(status - 1, q)
        return results

    def task_space_dynamics(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str, *,
                            frame: Frame = 'body',
                            condition_limit: float = 2e3) -> TaskSpaceDynamics:
        """Return the `TaskSpaceDynamics` of a link."""
        self._link_row(link)
        if type(condition_limit) is not float or not 1.0 <= condition_limit < np.inf:
            condition_limit = number('condition_limit', condition_limit, 1.0)
        aligned = choice('frame', frame, FRAMES) == 'world-aligned'
        J, J_dot = self._jacobian_dot(q, v, link, aligned)
        b, M = self.bias_torques(q, v), self.mass_matrix(q)
        if link not in self._lengths:
            self._lengths[link] = characteristic_length(self.model, link)
        out, J_bar, N = self._task(M, b, q, link, self._lengths[link], condition_limit)
        condition = float(out[7, 0])
        return TaskSpaceDynamics(out[:6], out[6], J, J_dot, J_bar, N, condition,
                                 condition > condition_limit)

    def task_inertia(self, M: np.ndarray, q: npt.ArrayLike, link: str, *, condition_limit: float,
                     length: float) -> tuple[np.ndarray, float]:
        """
        Return Lambda of a link in its own axes and the condition of its Jacobian.

        Parameters
        ----------
        M : ndarray, shape (nv, nv)
            Mass matrix at q.
        q : ndarray, shape (nq,)
            Configuration.
        link : str
            The link's name.
        condition_limit : float
            Condition number of the Jacobian beyond which the inverse is damped.
        length : float
            Unit of length in which the Jacobian is judged, m.

        """
        self._jacobian_dot(q, self._zeros, link, False)
        out, _, _ = self._task(M, self._zeros, q, link, length, condition_limit)
        return out[:6], float(out[7, 0])


# -- What `TaskSpaceMethods` keeps and hands out. -------------------------------------------------

def task_work(w: KernelInterface) -> tuple[np.ndarray, np.ndarray]:
    """Return buffers that the kernel of task space works in."""
    return np.zeros((w._nv, w._nv)), np.zeros((46 + 2 * w._nv, 6))


def task_results(w: KernelInterface) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a buffer for Lambda, eta and the condition; for J_bar; and for the null projector."""
    return np.zeros((8, 6)), np.zeros((w._nv, 6)), np.zeros((w._nv, w._nv))


def ahead(w: KernelInterface) -> np.ndarray:
    """Return for each velocity the last one before it that shares entries of M, or -1."""
    if w._folding is not None:
        return np.arange(w._nv) - 1
    return w.model.tree.robot[1:, PARENT].astype(np.int64) - 1


def folded_jacobian(w: KernelInterface) -> np.ndarray:
    """Return a buffer for the rows of `jacobian_rates` by the coordinates of the model."""
    return np.zeros((19, max(w._nv, 6)))
