# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from declarations of quantities, for checkers of types.

# ruff: noqa: E501

from collections.abc import Sequence
import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.contacts import ConstrainedDynamics
from rbd_ros.workspace.contacts import ConstrainedInverseDynamics
from rbd_ros.workspace.contacts import Contact
from rbd_ros.workspace.results import Derivatives
from rbd_ros.workspace.results import DynamicsTerms
from rbd_ros.workspace.results import Factorization
from rbd_ros.workspace.results import Frame
from rbd_ros.workspace.results import MatricesDot
from rbd_ros.workspace.results import ParameterDerivatives
from rbd_ros.workspace.results import TaskSpaceDynamics
from rbd_ros.workspace.robot_arrays import RobotArrays
from rbd_ros.workspace.variation import Variation
from typing import Any


class Workspace(RobotArrays):
    """
    The buffers of one robot, and the functions of `rbd_ros` and `rbd_ros.analysis` that use them.

    The methods have the names and the units of those functions. Some also return intermediate
    results: the Jacobian of a link comes with the link's pose, its rates with the Jacobian, the
    rate of the centroidal momentum matrix with the matrix, derivatives of hybrid dynamics with a
    and tau. `inverse_dynamics_packed` and `configuration_terms` exist only here.

    The next call of any method may overwrite the arrays that a method returned. Contiguous float64
    arrays are used as they are; anything else is converted, which costs time. A workspace serves
    one thread.
    """

    def __new__(cls, model: Model, **options: Any) -> Workspace: ...

    def _inverse_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, variation: Variation,
            external_wrenches: Wrenches | None) -> np.ndarray:
        """Return the derivative of tau, with wrenches that are already applied."""

    def _jacobian_and_bias(self, q: ArrayLike, v: ArrayLike, link: str, aligned:
            bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Return rows with J and Jdot v of a link for `_task_terms`, J, Jdot, the last velocity."""

    def _write_rates(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, factorization: Factorization,
            rates: np.ndarray) -> None:
        """Write C and the rates of C and g."""

    def acceleration_parameter_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *,
            external_wrenches: Wrenches | None=None) -> np.ndarray:
        """
        Return the derivatives of the accelerations with respect to the inertial parameters, -M^-1 Y.

        Parameters
        ----------
        q, v, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; torque (nv,), N m or N.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for Y, the `torque_regressor`.

        """

    def all_terms(self, q: ArrayLike, v: ArrayLike, factorization:
            Factorization='christoffel') -> DynamicsTerms:
        """
        Return M, C, g, C v, the centre of mass and its Jacobian, all in one pass of composite bodies.

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.
        factorization : {'christoffel', 'body'}
            Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same.

        Returns
        -------
        DynamicsTerms
            With the fields ``M C g coriolis_torques com_jacobian com``.

        """

    def bias_torques(self, q: ArrayLike, v: ArrayLike, external_wrenches: Wrenches |
            None=None) -> np.ndarray:
        """
        Return the torques at zero acceleration, C v + g - sum J^T f.

        Reference: Lynch and Park (9.1), b; recursive Newton-Euler, O(n).

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ndarray, shape (nv,), N m or N

        """

    def body_jacobian(self, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the Jacobian of a link about its origin, in its own axes.

        Reference: Vlasblom (2.8); Lynch and Park, text below (9.60); Garofalo et al. (27).

        Parameters
        ----------
        q, link
            Configuration (nq,), rad or m; name of the link.

        Returns
        -------
        J, T : ndarray, shapes (6, nv) and (4, 4)

        """

    def center_of_mass(self, q: ArrayLike) -> np.ndarray:
        """
        Return the centre of mass of the whole robot, root link included.

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (3,)
            In the root's frame, m; the root's origin for a robot without mass.

        """

    def centroidal_momentum_matrix(self, q: ArrayLike) -> np.ndarray:
        """
        Return the matrix A that maps v to the robot's momentum about its centre of mass.

        Reference: Kim (23), (24), summed over all links; linear rows, m J_CoM: Garofalo et al. (7).

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (6, nv)
            Angular first, in the axes of the root: kg m^2/s and kg m/s per rad/s or m/s.

        """

    def centroidal_momentum_matrix_dot(self, q: ArrayLike, v:
            ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the time derivative of `centroidal_momentum_matrix`.

        Reference: the sum of Kim (28), (30) over all links.

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

        Returns
        -------
        A, A_dot : ndarray, shape (6, nv)

        """

    def com_jacobian(self, q: ArrayLike) -> np.ndarray:
        """
        Return the Jacobian of the centre of mass.

        Reference: Garofalo et al. (7), by composite bodies.

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (3, nv)
            J v is the velocity of the centre of mass in the root's frame, m/s.

        """

    def com_jacobian_dot(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return the time derivative of `com_jacobian`.

        Reference: the derivative of Garofalo et al. (7), 1/m sum P^T (G Jdot - ad_V^T G J).

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

        Returns
        -------
        ndarray, shape (3, nv)
            J a + Jdot v is the acceleration of the centre of mass in the root's frame, m/s^2; zeros
            for a robot without mass.

        """

    def configuration_terms(self, q: ArrayLike) -> DynamicsTerms:
        """Compute the `DynamicsTerms` that need no velocity; C and C v are not updated."""

    def constrained_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, contacts:
            Sequence[Contact], *, external_wrenches: Wrenches | None=None) -> ConstrainedDynamics:
        """
        Return the accelerations of a robot whose contacts hold, and the wrenches there.

        The velocities of contacts do not change, whatever they are: after a touchdown, v must be that
        after the impact, in which J v = 0. Positions drift if accelerations are integrated.

        Contacts may be redundant, such as four points of one foot, or the contact of a link that no
        joint moves. Accelerations are unique nevertheless; of the wrenches that explain them, those
        with the smallest sum of squares (N m and N) are returned. Redundant contacts can contradict
        each other if J v is not 0; they are then satisfied in the sense of least squares.

        Reference: Gauss's principle; Featherstone (2008), (8.4); the limit of proximal iterations, as
        in Carpentier, Budhiraja and Mansard (2021).

        Parameters
        ----------
        q, v, tau
            configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; torque (nv,), N m or N,
            which for a floating base is usually zero in the first six entries.
        contacts : list or tuple of Contact
            Any number. Reuse the same objects in a control loop.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ConstrainedDynamics
            With the fields ``a wrenches redundant``.

        """

    def constrained_inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, contacts:
            Sequence[Contact], *, actuated: ArrayLike | None=None, wrench_weights: ArrayLike |
            None=None, torque_weights: ArrayLike | None=None, external_wrenches: Wrenches |
            None=None) -> ConstrainedInverseDynamics:
        """
        Return torques and contact wrenches that produce the accelerations a, and check the wrenches.

        The equations of velocities without motors, such as those of a floating base, are satisfied
        exactly; a StateError tells what is missing if these contacts cannot. Of all solutions, that
        with the smallest

            sum wrench_weights wrenches^2 + sum torque_weights tau^2

        is returned. Friction cones and the extent of soles are reported, not imposed: that would take
        a quadratic program. Whether a keeps the contacts still is not checked.

        Parameters
        ----------
        q, v, a
            configuration (nq,), rad or m; velocity and acceleration (nv,), per s and s^2.
        contacts : list or tuple of Contact
            Any number. Reuse the same objects in a control loop.
        actuated : array_like of bool, shape (nv,), optional
            Which velocities a motor drives; by default all but those of free joints.
        wrench_weights : array_like, shape (contacts, 6), optional
            Weights of moments, 1/(N m)^2, and forces, 1/N^2, in the axes of the root; by default 1.
        torque_weights : array_like, shape (nv,), optional
            Weights of torques, 1/(N m)^2 or 1/N^2; by default 0.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ConstrainedInverseDynamics
            With the fields ``tau wrenches checks``.

        """

    def constraint_forces(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """
        Return the forces of all equations of constraints, N and N m, in the axes of frames a.

        Parameters
        ----------
        q, v, a
            arguments as for `inverse_dynamics`.

        """

    def coriolis_matrix(self, q: ArrayLike, v: ArrayLike, factorization:
            Factorization='christoffel') -> np.ndarray:
        """
        Return the Coriolis matrix C(q, v), with dM/dt - 2 C skew.

        Reference: Lynch and Park (9.87), Vlasblom (1.16); ``'body'``: Garofalo et al. (6b).

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.
        factorization : {'christoffel', 'body'}
            Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same.

        Returns
        -------
        ndarray, shape (nv, nv), with C v in N m or N

        """

    def coriolis_matrix_derivatives(self, q: ArrayLike, v: ArrayLike, *, factorization:
            Factorization='christoffel') -> tuple[np.ndarray, np.ndarray]:
        """
        Return the derivatives of the Coriolis matrix with respect to coordinates and velocities.

        Reference: Garofalo et al. (24b), (24c), with dS/dq.

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.
        factorization : {'christoffel', 'body'}
            Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same.

        Returns
        -------
        by_q, by_v : ndarray, shape (nv, nv, nv)
            Entry h of the last axis: with respect to coordinate h, with v held, or to v_h.

        """

    def energy_regressor(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return the rows whose products with pi are the kinetic and the potential energy, J.

        Reference: Lynch and Park (9.41), 1/2 V^T G V, with Garofalo et al. (8).

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

        Returns
        -------
        ndarray, shape (2, 10 * bodies)
            Kinetic energy without the rotors; potential energy, zero at the root's origin. Columns as
            for `torque_regressor`.

        """

    def forward_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, external_wrenches:
            Wrenches | None=None) -> np.ndarray:
        """
        Return the accelerations that the torques tau produce.

        Reference: Kim table 3; articulated bodies, O(n). With mimic joints: Lynch and Park (9.2).

        Parameters
        ----------
        q, v, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; torque (nv,), N m or N.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ndarray, shape (nv,), rad/s^2 or m/s^2

        """

    def forward_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, variation:
            Variation, *, external_wrenches: Wrenches | None=None) -> np.ndarray:
        """
        Return d a / dp, where a are the accelerations that the torques tau produce.

        Reference: Kim table 6 and (64). Where joints mimic others: Kim (33), differentiated. The
        ``da`` of the variation is not used.

        Parameters
        ----------
        q, v, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; torque (nv,), N m or N.
        variation : Variation
            Derivatives of all arguments with respect to p.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ndarray, shape (nv,), rad/s^2 or m/s^2 per unit of p

        """

    def forward_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
            external_wrenches: Wrenches | None=None) -> Derivatives:
        """
        Return the derivatives of the accelerations with respect to q, v and tau.

        Reference: Kim table 6, all directions at once. ``by_input`` is the inverse of the mass matrix.

        Parameters
        ----------
        q, v, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; torque (nv,), N m or N.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        """

    def forward_kinematics(self, q: ArrayLike) -> np.ndarray:
        """
        Return the poses of all links in the root's frame.

        Reference: Kim (34); Lynch and Park (9.51); Vlasblom (2.3).

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (len(model.links), 4, 4)
            In the order of ``model.link_names``; each maps coordinates in the link to the root's.

        """

    def gravity_torques(self, q: ArrayLike) -> np.ndarray:
        """
        Return g(q), the torques that hold the robot still.

        Reference: Lynch and Park (9.84); Garofalo et al. (6c); recursive Newton-Euler, O(n).

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (nv,), N m or N

        """

    def gravity_torques_derivatives(self, q: ArrayLike) -> np.ndarray:
        """
        Return the derivatives of the gravity torques with respect to the coordinates.

        Reference: Garofalo et al. (24d).

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (nv, nv)
            Column h: with respect to coordinate h, N m or N per rad or m; symmetric if v = dq/dt.

        """

    def hybrid_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed:
            ArrayLike, *, external_wrenches: Wrenches |
            None=None) -> tuple[np.ndarray, np.ndarray]:
        """
        Return all accelerations and torques, given one of the two for every joint.

        Accelerations are read where they are prescribed, torques elsewhere. Reference: Kim table 4;
        articulated bodies, O(n). Where joints mimic others: Kim (33).

        Parameters
        ----------
        q, v, a, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2; torque (nv,), N m or N.
        prescribed : array_like of bool, shape (nv,)
            True where the acceleration is given, False where the torque is.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        a, tau : ndarray, shape (nv,)
            rad/s^2 or m/s^2, and N m or N.

        """

    def hybrid_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
            prescribed: ArrayLike, variation: Variation, *, external_wrenches: Wrenches |
            None=None) -> tuple[np.ndarray, np.ndarray]:
        """
        Return d a / dp and d tau / dp, given one of the two for every joint.

        Reference: Kim table 7 and (64). Where joints mimic others: Kim (33), differentiated. The
        ``da`` of the variation is used where ``prescribed``, ``dtau`` elsewhere.

        Parameters
        ----------
        q, v, a, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2; torque (nv,), N m or N.
        prescribed : array_like of bool, shape (nv,)
            True where the acceleration is given, False where the torque is.
        variation : Variation
            Derivatives of all arguments with respect to p.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        da, dtau : ndarray, shape (nv,), rad/s^2 or m/s^2, and N m or N, per unit of p

        """

    def hybrid_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
            prescribed: ArrayLike, *, external_wrenches: Wrenches |
            None=None) -> tuple[Derivatives, np.ndarray, np.ndarray]:
        """
        Return the derivatives of the unknown torques and accelerations.

        They are taken with respect to q, v and the given torque or acceleration of each joint.
        Reference: Kim (33) and table 7, for all directions at once.

        Parameters
        ----------
        q, v, a, tau
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2; torque (nv,), N m or N.
        prescribed : array_like of bool, shape (nv,)
            True where the acceleration is given, False where the torque is.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        derivatives : Derivatives
            Of the unknown torques and accelerations.
        a, tau : ndarray, shape (nv,)
            All accelerations and torques.

        """

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, external_wrenches:
            Wrenches | None=None) -> np.ndarray:
        """
        Return the torques that produce the accelerations a.

        Reference: Kim table 2; Lynch and Park (9.53)-(9.57); recursive Newton-Euler, O(n).

        Parameters
        ----------
        q, v, a
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ndarray, shape (nv,), N m or N

        """

    def inverse_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, variation:
            Variation, *, external_wrenches: Wrenches | None=None) -> np.ndarray:
        """
        Return d tau / dp, where the torques tau produce the accelerations a.

        Reference: Kim table 5 and (64). The ``dtau`` of the variation is not used.

        Parameters
        ----------
        q, v, a
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2.
        variation : Variation
            Derivatives of all arguments with respect to p.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        Returns
        -------
        ndarray, shape (nv,), N m or N per unit of p

        """

    def inverse_dynamics_derivatives(self, q: ArrayLike, v: ArrayLike, a: ArrayLike,
            external_wrenches: Wrenches | None=None) -> Derivatives:
        """
        Return the derivatives of the torques with respect to q, v and a.

        Reference: Kim table 5, all directions at once; O(n depth). ``by_input`` is the mass matrix.

        Parameters
        ----------
        q, v, a
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2.
        external_wrenches : mapping of str to array_like, optional
            Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.

        """

    def inverse_dynamics_packed(self, motion: ArrayLike) -> np.ndarray:
        """Return the torques for q, v and a in one array (nq + 2 nv,), which is faster to pass."""

    def jacobian_ddot(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, link:
            str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """
        Return the second time derivative of the body Jacobian of a link.

        Reference: Garofalo et al. (29), with dS/dt and its rate.

        Parameters
        ----------
        q, v, a, link
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2; name of the link.

        Returns
        -------
        J, J_dot, J_ddot : ndarray, shape (6, nv)

        """

    def jacobian_derivatives(self, q: ArrayLike, link: str) -> np.ndarray:
        """
        Return the derivatives of the body Jacobian of a link with respect to the coordinates.

        Reference: Vlasblom (1.13), (2.21); Garofalo et al. (30), (31), (33).

        Parameters
        ----------
        q, link
            Configuration (nq,), rad or m; name of the link.

        Returns
        -------
        ndarray, shape (6, nv, nv)
            ``dJ[:, :, h]``, with respect to coordinate h, per rad or m, is also that of Jdot with
            respect to v_h.

        """

    def jacobian_dot(self, q: ArrayLike, v: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the time derivative of the body Jacobian of a link.

        Reference: Garofalo et al. (28), with dS/dt.

        Parameters
        ----------
        q, v, link
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; name of the link.

        Returns
        -------
        J, J_dot : ndarray, shape (6, nv)

        """

    def jacobian_dot_derivatives(self, q: ArrayLike, v: ArrayLike, link:
            str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the derivatives of Jdot of a link with respect to coordinates and velocities.

        Reference: Garofalo et al. (30), (32), (33).

        Parameters
        ----------
        q, v, link
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; name of the link.

        Returns
        -------
        by_q, by_v : ndarray, shape (6, nv, nv)
            Entry h of the last axis: with respect to coordinate h, with v held, or to v_h.

        """

    def jacobian_dot_v(self, q: ArrayLike, v: ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v of a link, in its own axes: its acceleration where a is zero."""

    def mass_matrix(self, q: ArrayLike) -> np.ndarray:
        """
        Return the joint-space mass matrix M(q), symmetric positive definite.

        Reference: Lynch and Park (9.61); Vlasblom (2.17); composite bodies.

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (nv, nv), kg m^2, kg m or kg by pair of joints

        """

    def mass_matrix_derivatives(self, q: ArrayLike) -> np.ndarray:
        """
        Return the derivatives of the mass matrix with respect to the coordinates.

        Reference: Vlasblom (1.14), (2.22), summed over all bodies; Garofalo et al. (24a).

        Parameters
        ----------
        q
            Configuration (nq,), rad or m.

        Returns
        -------
        ndarray, shape (nv, nv, nv)
            ``dM[:, :, h]`` is taken with respect to coordinate h, per rad or m.

        """

    def matrices_dot(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, factorization:
            Factorization='christoffel') -> MatricesDot:
        """
        Return the time derivatives dM/dt, dC/dt and dg/dt.

        Reference: Garofalo et al. (25), with Jddot and the rate of Psi, whose dots (25b) lacks.

        Parameters
        ----------
        q, v, a
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2.
        factorization : {'christoffel', 'body'}
            Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same.

        """

    def momentum_regressor(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """
        Return Y with Y pi = M v - (armature) v, the generalized momentum.

        Reference: Garofalo et al. (6a) with (8).

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for `torque_regressor`.

        """

    def parameter_derivatives(self, q: ArrayLike, v: ArrayLike, *, factorization:
            Factorization='christoffel') -> ParameterDerivatives:
        """
        Return the derivatives of M, C and g with respect to the inertial parameters pi.

        C and g, and M without the armature, are linear in pi: each is the sum of its derivatives times
        the parameters. The last axis is that of the columns of the regressors:
        ``np.einsum('ijk,j', M, a) + np.einsum('ijk,j', C, v) + g`` is `torque_regressor`.

        Reference: Garofalo et al. (13), with Jdot, whose dot (13b) lacks.

        Parameters
        ----------
        q, v
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s.
        factorization : {'christoffel', 'body'}
            Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same.

        """

    def slotine_li_regressor(self, q: ArrayLike, v: ArrayLike, v_r: ArrayLike, a_r: ArrayLike, *,
            factorization: Factorization='christoffel') -> np.ndarray:
        """
        Return Y with Y pi = M a_r + C v_r + g - (armature) a_r, for adaptive control.

        Reference: Garofalo et al. (15), (16).

        Parameters
        ----------
        q, v, v_r, a_r
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; reference velocity (nv,);
            reference acceleration (nv,).
        factorization : {'christoffel', 'body'}
            Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same.

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns as for `torque_regressor`.

        """

    def task_inertia(self, M: np.ndarray, q: ArrayLike, link: str, *, condition_limit: float,
            length: float) -> tuple[np.ndarray, float]:
        """Return Lambda of a link in its own axes, and the condition number in units of ``length``."""

    def task_space_dynamics(self, q: ArrayLike, v: ArrayLike, link: str, *, frame: Frame='body',
            condition_limit: float=2000.0) -> TaskSpaceDynamics:
        """
        Return the equations of motion of a link, F = Lambda Vdot + eta.

        F is the wrench that the joint torques exert at the link, J_bar^T tau, or the external wrench
        on it where there are no torques. Where J is square and invertible, J_bar is J^-1.

        Lambda is (J M^-1 J^T + D)^-1. With lengths in units of `characteristic_length`, J has the
        singular values sigma_i and the left singular vectors u_i. With sigma_0 the largest of them
        over ``condition_limit``,

            D = mu sum (sigma_0^2 - sigma_i^2) u_i u_i^T    over all sigma_i < sigma_0

        with mu the largest eigenvalue of J M^-1 J^T over the square of the largest sigma. Away from
        singular poses D is zero, and near them it grows continuously in q. It gives directions in
        which the link cannot be moved at all (too few joints, a singular pose) a large finite inertia
        instead of an infinite one, and does not affect the others.

        Reference: Lynch and Park (9.90)-(9.99), with b for J^-T b in (9.95); Lambda = (J M^-1 J^T)^-1
        and J_bar = M^-1 J^T Lambda for redundant arms.

        Parameters
        ----------
        q, v, link
            configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; name of the link, which
            a joint must move (ModelError).
        frame : {'body', 'world-aligned'}
            Axes of the twist and the wrench: the link's, or the root's; both at the link's origin.
        condition_limit : float
            Condition number of J beyond which the inverse is damped; at least 1.

        Returns
        -------
        TaskSpaceDynamics
            With the fields ``Lambda eta J J_dot J_bar null_projector condition damped``.

        """

    def torque_regressor(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """
        Return Y(q, v, a) with Y pi = tau - (armature) a.

        Masses and inertias of the robot are not used. Reference: Garofalo et al. (15), (16) with v_r =
        v and a_r = a.

        Parameters
        ----------
        q, v, a
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; acceleration (nv,), rad/s^2
            or m/s^2.

        Returns
        -------
        ndarray, shape (nv, 10 * bodies)
            Columns in the order of `rbd_ros.model.inertial_parameter_names`.

        """

    def world_jacobian(self, q: ArrayLike, link: str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the Jacobian of a link about its origin, in the axes of the root.

        Reference: Vlasblom (2.13), for any point of the body.

        Parameters
        ----------
        q, link
            Configuration (nq,), rad or m; name of the link.

        Returns
        -------
        J, T : ndarray, shapes (6, nv) and (4, 4)

        """

    def world_jacobian_dot(self, q: ArrayLike, v: ArrayLike, link:
            str) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the time derivative of `world_jacobian`, Ad_R (Jdot + blockdiag([omega], [omega]) J).

        Parameters
        ----------
        q, v, link
            Configuration (nq,), rad or m; velocity (nv,), rad/s or m/s; name of the link.

        Returns
        -------
        J, J_dot : ndarray, shape (6, nv)

        """

    def world_jacobian_dot_v(self, q: ArrayLike, v: ArrayLike, link: str) -> np.ndarray:
        """Return Jdot v of a link, in the root's axes: its acceleration where a is zero."""

class CoupledWorkspace(Workspace): ...

class ClosedWorkspace(Workspace):
    _A: np.ndarray
    _G: np.ndarray
    def _at(self, q: ArrayLike) -> None: ...
    def _move(self, q: ArrayLike, v: ArrayLike, *a: ArrayLike) -> None: ...
    def _in_tree(self, q: ArrayLike, **vectors: ArrayLike) -> list[Any]: ...
    def _torques(self, tau: np.ndarray) -> np.ndarray: ...

def workspace_of(model: Model) -> Workspace: ...
