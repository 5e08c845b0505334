# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The methods of `Workspace` for Jacobians, momentum, task space and derivatives of matrices."""

from collections.abc import Callable
from typing import Literal, NamedTuple, TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import ModelError
from rbd_ros.kernel_interface import KernelInterface, made_at_first_use, NOT_A_VECTOR
from rbd_ros.kernels.bodies import PARENT
from rbd_ros.kernels.centroidal import centroidal_momentum
from rbd_ros.kernels.compiled import prepare
from rbd_ros.kernels.composite_body_rates import composite_rates
from rbd_ros.kernels.link_jacobians import (link_bias, link_jacobian_derivatives,
                                            link_jacobian_rates)
from rbd_ros.kernels.matrix_derivatives import (add_factorization_rate,
                                                coriolis_matrix_derivatives,
                                                mass_matrix_derivatives)
from rbd_ros.kernels.mimics import fold_stacked
from rbd_ros.kernels.parameter_matrices import parameter_matrices
from rbd_ros.kernels.regressors import energy_columns, momentum_columns
from rbd_ros.kernels.task_space import task_space, UNMOVED
from rbd_ros.model.model import Model
from rbd_ros.validation import choice, number, Wrenches

if TYPE_CHECKING:
    from rbd_ros.workspace import Derivatives, DynamicsTerms

# Of the way from the root to a link, for the unit of length.
SHARE_OF_WAY = 0.2
FRAMES = ('body', 'world-aligned')
Frame: TypeAlias = Literal['body', 'world-aligned']
Factorization: TypeAlias = Literal['christoffel', 'body']
FACTORIZATIONS = ('christoffel', 'body')


class TaskSpaceDynamics(NamedTuple):
    """
    What `task_space_dynamics` computes.

    Attributes
    ----------
    Lambda : ndarray, shape (6, 6)
        Task-space inertia, kg m^2, kg m and kg; angular first.
    eta : ndarray, shape (6,)
        Coriolis, gravity and centrifugal wrench: moment, N m, and force, N.
    J, J_rate : ndarray, shape (6, nv)
        Jacobian of the link and its rate of change; the link's twist is J v.
    J_bar : ndarray, shape (nv, 6)
        Dynamically consistent inverse of J: the motion of least kinetic energy for a twist. Its
        transpose maps torques to the wrench that they exert.
    null_projector : ndarray, shape (nv, nv)
        N = 1 - J_bar J. N v does not move the link; torques N^T tau do not accelerate it.
    condition : float
        Largest over smallest singular value of J, which has six, with lengths in units of
        `characteristic_length`; infinite where rank is lost.
    damped : bool
        Whether the condition number passed the limit, so that Lambda, eta, J_bar and
        null_projector are those of a damped inverse.

    """

    Lambda: np.ndarray
    eta: np.ndarray
    J: np.ndarray
    J_rate: np.ndarray
    J_bar: np.ndarray
    null_projector: np.ndarray
    condition: float
    damped: bool


def characteristic_length(model: Model, link: str) -> float:
    """
    Return the length with which turns of a link compare with its shifts.

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
        way += np.linalg.norm(up[link].placement[:3, 3])
        link = up[link].parent
    return SHARE_OF_WAY * way if way > 0.0 else 1.0


class MatricesDot(NamedTuple):
    """
    What `matrices_dot` computes.

    Attributes
    ----------
    M_dot, C_dot : ndarray, shape (nv, nv)
        dM/dt and dC/dt.
    g_dot : ndarray, shape (nv,)
        dg/dt, N m/s or N/s.

    """

    M_dot: np.ndarray
    C_dot: np.ndarray
    g_dot: np.ndarray


class ParameterDerivatives(NamedTuple):
    """
    What `parameter_derivatives` computes.

    ``M[:, :, k]`` is the derivative of M by the inertial parameter k of the moving bodies, in the
    order of `rbd_ros.model.inertial_parameter_names`.

    Attributes
    ----------
    M, C : ndarray, shape (nv, nv, 10 * bodies)
        Of the mass and the Coriolis matrix.
    g : ndarray, shape (nv, 10 * bodies)
        Of the gravity torques.

    """

    M: np.ndarray
    C: np.ndarray
    g: np.ndarray


class AnalysisMethods(KernelInterface):
    """
    What `Workspace` has of `rbd_ros.analysis`: buffers, and the kernels that fill them.

    Shapes, units and errors are documented with the functions of the same names there.

    """

    # What `Workspace` has besides, as far as it is used here.
    bias_torques: Callable[..., np.ndarray]
    torque_regressor: Callable[..., np.ndarray]
    forward_dynamics: Callable[..., np.ndarray]
    configuration_terms: Callable[..., 'DynamicsTerms']
    inverse_dynamics_derivatives: Callable[..., 'Derivatives']
    _no_acceleration: np.ndarray

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._link_rows: dict[str, np.ndarray] = {}
        self._body_rows: dict[str, np.ndarray] = {}
        self._lengths: dict[str, float] = {}

    @property
    def _width(self) -> int:
        """Return how many velocities the kernels count, those of mimicking joints included."""
        return len(self._places) - 1

    def _link_row(self, link: str) -> np.ndarray:
        """Return the body of a link and its pose there, as the kernels want them."""
        try:
            return self._link_rows[link]
        except (KeyError, TypeError):
            k, tree = self.model.link_index(link), self.model.tree
            pose = tree.link_pose[k]
            here = [tree.link_body[k], *pose[:3, :3].T.ravel(), *pose[:3, 3]]
            self._body_rows[link] = np.array([[*here, 0.0]])
            self._link_rows[link] = np.array([[*here, 1.0]])
            return self._link_rows[link]

    def _fold_columns(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return arrays whose last axis is that of the tree's velocities by those of the model."""
        return arrays if self._folding is None else tuple(x @ self._folding.G for x in arrays)

    # -- Jacobians of a link. --------------------------------------------------------------------

    @made_at_first_use
    def _rate_rows(self) -> np.ndarray:
        """Return room for the Jacobian of a link, its rates and Jdot v."""
        return np.zeros((19, max(self._width, 6)))

    @made_at_first_use
    def _rates_of_jacobian(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the views of that room that are handed out."""
        rows, n = self._rate_rows, self._width
        return rows[:6, :n], rows[6:12, :n], rows[12:18, :n]

    @made_at_first_use
    def _jacobian_and_its_rate(self) -> tuple[np.ndarray, np.ndarray]:
        J, J_rate, _ = self._rates_of_jacobian
        return J, J_rate

    def _jacobian_rate(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str,
                       aligned: bool) -> tuple[np.ndarray, np.ndarray]:
        try:
            if self._folding is None and link_jacobian_rates(
                    self.robot, self._screws, q, v, None, self._link_rows[link], aligned,
                    self._rate_rows):
                return self._jacobian_and_its_rate
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_jacobian_rates, 'qv', (q, v), None, self._link_row(link), aligned,
                  self._rate_rows)
        J, J_rate = self._fold_columns(*self._jacobian_and_its_rate)
        return J, J_rate

    def body_jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike,
                          link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link about its origin, in its own axes, and its rate."""
        return self._jacobian_rate(q, v, link, False)

    def world_jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike,
                           link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the Jacobian of a link about its origin, in the root's axes, and its rate."""
        return self._jacobian_rate(q, v, link, True)

    @made_at_first_use
    def _bias(self) -> np.ndarray:
        return np.zeros((1, 6))

    def _rate_times_velocity(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str,
                             aligned: bool) -> np.ndarray:
        try:
            if self._folding is None and link_bias(
                    self.robot, self._screws, q, v, self._link_rows[link], aligned, self._bias):
                return self._bias[0]
        except (KeyError, *NOT_A_VECTOR):
            pass
        self._run(link_bias, 'qv', (q, v), self._link_row(link), aligned, self._bias)
        return self._bias[0]

    def body_jacobian_dot_v(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v of a link, in its own axes: its acceleration where a is zero."""
        return self._rate_times_velocity(q, v, link, False)

    def world_jacobian_dot_v(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v of a link, in the root's axes: its acceleration where a is zero."""
        return self._rate_times_velocity(q, v, link, True)

    def jacobian_ddot(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike,
                      link: str) -> tuple[np.ndarray, ...]:
        """Return the body Jacobian of a link with its first and second rates."""
        if a is None:
            self.check(a=a)
        self._run(link_jacobian_rates, 'qva', (q, v, a), self._link_row(link), False,
                  self._rate_rows)
        return self._fold_columns(*self._rates_of_jacobian)

    @made_at_first_use
    def _jacobian_derivatives(self) -> np.ndarray:
        n = self._width
        return np.zeros((2, n, 6, n))

    def _fold_derivatives(self, D: np.ndarray) -> np.ndarray:
        """Return derivatives by the tree's coordinates, the first axis, by the model's."""
        if self._folding is None:
            return D
        G = self._folding.G
        return np.tensordot(G.T, D @ G, 1)

    def jacobian_derivatives(self, q: npt.ArrayLike, link: str) -> np.ndarray:
        """Return the derivatives of the body Jacobian of a link by q, shape (6, nv, nv)."""
        of_J, of_rate = self._jacobian_derivatives
        self._run(link_jacobian_derivatives, 'q', (q,), None, self._link_row(link), of_J, of_rate)
        return self._fold_derivatives(of_J).transpose(1, 2, 0)

    def jacobian_dot_derivatives(self, q: npt.ArrayLike, v: npt.ArrayLike,
                                 link: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of the rate of the body Jacobian of a link by q and by v."""
        of_J, of_rate = self._jacobian_derivatives
        if v is None:
            self.check(v=v)
        self._run(link_jacobian_derivatives, 'qv', (q, v), self._link_row(link), of_J, of_rate)
        return (self._fold_derivatives(of_rate).transpose(1, 2, 0),
                self._fold_derivatives(of_J).transpose(1, 2, 0))

    # -- Momentum of the whole robot. ------------------------------------------------------------

    @made_at_first_use
    def _momentum_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows = np.zeros((12, self._width))
        return rows, rows[:6], rows[6:]

    def centroidal_momentum_matrix(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the matrix that takes v to the robot's momentum about its centre of mass."""
        rows, A, _ = self._momentum_rows
        try:
            if self._folding is None and centroidal_momentum(self.robot, self._screws, q, None,
                                                             rows):
                return A
        except NOT_A_VECTOR:
            pass
        self._run(centroidal_momentum, 'q', (q,), None, rows)
        return self._fold_columns(A)[0]

    def centroidal_momentum_matrix_dot(self, q: npt.ArrayLike,
                                       v: npt.ArrayLike) -> tuple[np.ndarray, ...]:
        """Return the centroidal momentum matrix and its rate."""
        rows, A, A_rate = self._momentum_rows
        if v is None:
            self.check(v=v)         # the kernel has a meaning for it
        try:
            if self._folding is None and centroidal_momentum(self.robot, self._screws, q, v, rows):
                return A, A_rate
        except NOT_A_VECTOR:
            pass
        self._run(centroidal_momentum, 'qv', (q, v), rows)
        return self._fold_columns(A, A_rate)

    def com_jacobian_dot(self, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
        """Return the rate of the Jacobian of the centre of mass."""
        _, rate = self.centroidal_momentum_matrix_dot(q, v)
        mass = self.model.mass
        return rate[3:] / mass if mass else np.zeros((3, self.model.nv))

    # -- Task space. -----------------------------------------------------------------------------

    @made_at_first_use
    def _task_room(self) -> tuple[np.ndarray, ...]:
        """Return room for L, for what the kernel works in, and for out, J_bar and N."""
        n = self.model.nv
        return (np.zeros((n, n)), np.zeros((46 + 2 * n, 6)), np.zeros((8, 6)), np.zeros((n, 6)),
                np.zeros((n, n)))

    @made_at_first_use
    def _ahead(self) -> np.ndarray:
        """Return for each velocity the last one before it that shares entries of M, or -1."""
        if self._folding is not None:
            return np.arange(self.model.nv) - 1
        return self.model.tree.robot[1:, PARENT].astype(np.int64) - 1

    @made_at_first_use
    def _folded_jacobian(self) -> np.ndarray:
        return np.zeros((19, max(self.model.nv, 6)))

    def _task(self, M: np.ndarray, b: np.ndarray, q: npt.ArrayLike, link: str, length: float,
              limit: float) -> None:
        """Run the kernel of task space on the Jacobian that was computed last."""
        rows, last = self._rate_rows, int(self._link_row(link)[0, 0]) - 1
        if self._folding is not None:
            tree, rows, last = rows, self._folded_jacobian, self.model.nv - 1
            rows[:6, :self.model.nv] = tree[:6, :self._width] @ self._folding.G
            rows[18, :6] = tree[18, :6]
        arguments = (np.ascontiguousarray(M), rows, b, self._ahead, last, length, limit,
                     *self._task_room)
        try:
            status = task_space(*arguments)
        except NOT_A_VECTOR:
            prepare(task_space, *arguments)
            status = task_space(*arguments)
        if status == UNMOVED:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it")
        if status > 0:
            self._refuse(status - 1, q)

    def _length(self, link: str) -> float:
        if link not in self._lengths:
            self._lengths[link] = characteristic_length(self.model, link)
        return self._lengths[link]

    def task_space_dynamics(self, q: npt.ArrayLike, v: npt.ArrayLike, link: str, *,
                            frame: Frame = 'body',
                            condition_limit: float = 2e3) -> TaskSpaceDynamics:
        """Return the `TaskSpaceDynamics` of a link."""
        self._link_row(link)
        if type(condition_limit) is not float or not 1.0 <= condition_limit < np.inf:
            condition_limit = number('condition_limit', condition_limit, 1.0)
        aligned = choice('frame', frame, FRAMES) == 'world-aligned'
        J, J_rate = self._jacobian_rate(q, v, link, aligned)
        b = self.bias_torques(q, v)
        M = self.configuration_terms(q).M
        self._task(M, b, q, link, self._length(link), condition_limit)
        _, _, out, J_bar, N = self._task_room
        condition = float(out[7, 0])
        return TaskSpaceDynamics(out[:6], out[6], J, J_rate, J_bar, N, condition,
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
        self._jacobian_rate(q, self._no_acceleration, link, False)
        self._task(M, self._no_acceleration, q, link, length, condition_limit)
        out = self._task_room[2]
        return out[:6], float(out[7, 0])

    # -- Derivatives of M, C and g. --------------------------------------------------------------

    def _skew(self, factorization: Factorization) -> int | None:
        """Return what the kernels take for a factorization of C."""
        return 1 if choice('factorization', factorization, FACTORIZATIONS) == 'body' else None

    def _fold_all(self, D: np.ndarray) -> np.ndarray:
        """Return an array with three axes of the tree's velocities by those of the model."""
        if self._folding is None:
            return D
        G = self._folding.G
        return np.tensordot(G.T, G.T @ D @ G, 1)

    # Entries of joints that do not carry each other are never written: they stay zero.
    @made_at_first_use
    def _of_M(self) -> np.ndarray:
        return np.zeros(3 * (self._width,))

    @made_at_first_use
    def _of_C(self) -> np.ndarray:
        return np.zeros((2, *3 * (self._width,)))

    def mass_matrix_derivatives(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the derivatives of M by the coordinates, shape (nv, nv, nv)."""
        self._run(mass_matrix_derivatives, 'q', (q,), self._of_M)
        return self._fold_all(self._of_M).transpose(1, 2, 0)

    def coriolis_matrix_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, *,
            factorization: Factorization = 'christoffel') -> tuple[np.ndarray, np.ndarray]:
        """Return the derivatives of C by the coordinates and by the velocities."""
        by_q, by_v = self._of_C
        self._run(coriolis_matrix_derivatives, 'qv', (q, v), self._skew(factorization), by_q, by_v)
        return self._fold_all(by_q).transpose(1, 2, 0), self._fold_all(by_v).transpose(1, 2, 0)

    def gravity_torques_derivatives(self, q: npt.ArrayLike) -> np.ndarray:
        """Return the derivatives of g: of the torques by q, where nothing moves."""
        zero = self._no_acceleration
        return self.inverse_dynamics_derivatives(q, zero, zero).by_position

    @made_at_first_use
    def _rates(self) -> np.ndarray:
        n = self._width
        return np.zeros((2 * n + 1, n))

    @made_at_first_use
    def _folded_rates(self) -> np.ndarray:
        n = self.model.nv
        return np.zeros((2 * n + 1, n))

    def matrices_dot(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, *,
                     factorization: Factorization = 'christoffel') -> MatricesDot:
        """Return the `MatricesDot`."""
        skew, rows, n = self._skew(factorization), self._rates, self._width
        self._run(composite_rates, 'qva', (q, v, a), rows)
        if skew is not None:
            self._call(add_factorization_rate, self.robot, rows)
        if self._folding is not None:
            n = self.model.nv
            self._call(fold_stacked, self._folding.columns, n, 2, 1, rows, self._folded_rates)
            rows = self._folded_rates
        C = rows[:n]
        return MatricesDot(C + C.T, rows[n:2 * n], rows[-1])

    # -- What each inertial parameter contributes. -----------------------------------------------

    @made_at_first_use
    def _moving_links(self) -> np.ndarray:
        """Return the body of each link that a joint moves, and its rotation to that."""
        tree = self.model.tree
        links = [k for k, joint in enumerate(self.model.joints, 1) if joint.nv]
        rotations = tree.link_pose[links, :3, :3].transpose(0, 2, 1).reshape(-1, 9)
        return np.column_stack((tree.link_body[links], rotations))

    @made_at_first_use
    def _parameters(self) -> int:
        return 10 * len(self._moving_links)

    # Entries of joints that do not carry a body are never written: they stay zero.
    @made_at_first_use
    def _parameter_matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        n, parameters = self._width, self._parameters
        return (np.zeros((n, n, parameters)), np.zeros((n, n, parameters)),
                np.zeros((n, parameters)))

    @made_at_first_use
    def _energy_rows(self) -> np.ndarray:
        return np.zeros((2, self._parameters))

    @made_at_first_use
    def _momentum_columns(self) -> np.ndarray:
        return np.zeros((self._width, self._parameters))

    def _fold_rows(self, A: np.ndarray) -> np.ndarray:
        """Return an array whose first axis is that of the tree's velocities by the model's."""
        return A if self._folding is None else np.tensordot(self._folding.G.T, A, 1)

    def parameter_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, *,
            factorization: Factorization = 'christoffel') -> ParameterDerivatives:
        """Return the `ParameterDerivatives`."""
        h = 0.5 if self._skew(factorization) is None else 0.0
        M, C, g = self._parameter_matrices
        self._run(parameter_matrices, 'qv', (q, v), self._moving_links, h, M, C, g)
        if self._folding is not None:
            # Once along the first axis, once along the second.
            M, C = (self._folding.G.T @ self._fold_rows(x) for x in (M, C))
        return ParameterDerivatives(M, C, self._fold_rows(g))

    def acceleration_parameter_derivatives(
            self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, *,
            external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivatives of a by the parameters, shape (nv, 10 bodies)."""
        a = self.forward_dynamics(q, v, tau, external_wrenches=external_wrenches)
        Y = self.torque_regressor(q, v, a)
        return -np.linalg.solve(self.configuration_terms(q).M, Y)

    def momentum_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
        """Return Y with Y pi = M v - (armature) v."""
        Y = self._momentum_columns
        self._run(momentum_columns, 'qv', (q, v), self._moving_links, Y)
        return self._fold_rows(Y)

    def energy_regressor(self, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
        """Return the rows whose products with pi are the kinetic and the potential energy."""
        self._run(energy_columns, 'qv', (q, v), self._moving_links, self._energy_rows)
        return self._energy_rows
