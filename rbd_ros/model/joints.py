# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The kinds of joints: pose X(q), motion subspace S(q) and its rate.

There are two families:

- products of screws, X = exp(B_1 q_1) ... exp(B_n q_n), with v = dq/dt; S depends on q if the
  screws do not commute (universal, Euler angles, planar);
- ball and free joints: q has a quaternion (x, y, z, w), v is the twist of the moving body in its
  own axes, and S is constant.

"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.arrays import ByValue
from rbd_ros.model.se3 import Ad, ad, exp, inverse, pose

X, Y, Z = np.eye(3)

# Drive coefficients, attributes of joints and of robots: the meaning and unit of each.
DRIVE = {
    'damping': ('Viscous friction', 'N m s/rad or N s/m'),
    'damping_asymmetry': ('Added to drives.damping in the positive direction, subtracted in the '
                          'negative one', 'N m s/rad or N s/m'),
    'friction': ('Coulomb friction', 'N m or N'),
    'friction_asymmetry': ('Added to drives.friction in the positive direction, subtracted in the '
                           'negative one', 'N m or N'),
    'stribeck_friction': ('Additional Coulomb friction near rest', 'N m or N'),
    'stribeck_velocity': ('Speed at which 1/e of drives.stribeck_friction is left',
                          'rad/s or m/s'),
    'effort_offset': ('Effort of the drive at zero torque', 'N m or N'),
    'stiffness': ('Stiffness of springs', 'N m/rad or N/m'),
    'spring_reference': ('Coordinate at which a spring exerts no torque', 'rad or m'),
    'armature': ('Rotor inertia, reflected to the joint side (times the squared gear ratio)',
                 'kg m^2 or kg')}

# Limits that URDF has since version 1.2: attributes of joints.
NEW_LIMITS = ('acceleration', 'deceleration', 'jerk')

# All attributes of joints with one number per velocity.
PER_VELOCITY = ('lower', 'upper', 'velocity', 'effort', *NEW_LIMITS, *DRIVE)

# An axis through the joint's origin (3,), with the rotation about it, rad, and the translation
# along it, m, per unit of the coordinate.
Screw: TypeAlias = tuple[np.ndarray, float, float]


@dataclass(frozen=True)
class JointKind:
    """Properties that all joints of a kind share."""

    # For each entry of q and of v: its name is the joint's with this suffix.
    position_suffixes: tuple[str, ...]
    velocity_suffixes: tuple[str, ...]
    angular: tuple[bool, ...]  # Whether each entry of v is in rad/s (otherwise m/s).
    axes: int = 0  # How many axes the kind takes.
    # Returns the screws of a joint; None for ball and free joints.
    screws: Callable[['Joint'], list[Screw]] | None = None

    @property
    def nq(self) -> int:
        return len(self.position_suffixes)

    @property
    def nv(self) -> int:
        return len(self.velocity_suffixes)

    @property
    def is_screws(self) -> bool:
        """Return whether the pose is a product of screws, and v = dq/dt."""
        return self.screws is not None


def plane_axes(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two unit vectors x, y with x, y, normal right-handed; X, Y for the normal Z."""
    x = X - normal * normal[0]
    if np.linalg.norm(x) < 0.5:
        x = Z - normal * normal[2]
    x = x / np.linalg.norm(x)
    return x, np.cross(normal, x)


def _turn(axis: np.ndarray) -> Screw:
    return axis, 1.0, 0.0


def _slide(axis: np.ndarray) -> Screw:
    return axis, 0.0, 1.0


def _screws(suffixes: tuple[str, ...], angular: tuple[bool, ...], axes: int,
            screws: Callable[['Joint'], list[Screw]]) -> JointKind:
    return JointKind(suffixes, suffixes, angular, axes, screws)


_TWIST = ('_wx', '_wy', '_wz', '_vx', '_vy', '_vz')
_QUATERNION = ('_qx', '_qy', '_qz', '_qw')

KINDS = {
    'fixed': _screws((), (), 0, lambda joint: []),
    'revolute': _screws(('',), (True,), 1, lambda joint: [_turn(joint.axis)]),
    'continuous': _screws(('',), (True,), 1, lambda joint: [_turn(joint.axis)]),
    'prismatic': _screws(('',), (False,), 1, lambda joint: [_slide(joint.axis)]),
    'helical': _screws(('',), (True,), 1, lambda joint: [(joint.axis, 1.0, joint.pitch)]),
    'cylindrical': _screws(
        ('_turn', '_slide'), (True, False), 1,
        lambda joint: [_turn(joint.axis), _slide(joint.axis)]),
    'universal': _screws(
        ('_1', '_2'), (True, True), 2,
        lambda joint: [_turn(joint.axis), _turn(joint.second_axis)]),
    'planar': _screws(
        ('_x', '_y', '_theta'), (False, False, True), 1,
        lambda joint: [*map(_slide, plane_axes(joint.axis)), _turn(joint.axis)]),
    'euler_zyx': _screws(
        ('_z', '_y', '_x'), (True,) * 3, 0, lambda joint: [_turn(Z), _turn(Y), _turn(X)]),
    'free_euler_zyx': _screws(
        ('_x', '_y', '_z', '_rz', '_ry', '_rx'), (False,) * 3 + (True,) * 3, 0,
        lambda joint: [_slide(X), _slide(Y), _slide(Z), _turn(Z), _turn(Y), _turn(X)]),
    'spherical': JointKind(_QUATERNION, _TWIST[:3], (True,) * 3),
    'free': JointKind((*_QUATERNION, '_x', '_y', '_z'), _TWIST, (True,) * 3 + (False,) * 3),
}


@dataclass(frozen=True)
class Mimic:
    """q of the joint that has it is ``multiplier`` times q of ``joint``, plus ``offset``."""

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint(ByValue):
    """
    One joint of a robot's description.

    Attributes
    ----------
    name, kind, parent, child : str
        The kind is a key of `KINDS`; parent and child are links.
    placement : ndarray, shape (4, 4)
        Pose of the joint's frame in the parent link's frame; the child's frame coincides with it
        at q = 0.
    axis, second_axis : ndarray, shape (3,)
        Unit vectors in the joint's frame. ``axis`` is the normal of a planar joint.
    pitch, mimic : float, Mimic or None
        Pitch of a helical joint, m/rad; the leader if the joint mimics another.
    lower, upper, velocity, effort : tuple of float
        For each velocity, the limits of the coordinate, rad or m, infinite if there is none, and
        those of v, rad/s or m/s, and of tau, N m or N; 0: not stated, or that there is no motor.
    acceleration, deceleration, jerk : tuple of float
        For each velocity, the limits of its rates, SI units, infinite if there is none.
    damping, damping_asymmetry, friction, friction_asymmetry : tuple of float
        For each velocity, viscous friction, N m s/rad or N s/m, and Coulomb friction, N m or N:
        the sum with the asymmetry in the positive direction, the difference in the negative one.
    stribeck_friction, stribeck_velocity : tuple of float
        For each velocity, the additional friction near rest, N m or N, and the speed, rad/s or
        m/s, at which it has fallen to 1/e.
    effort_offset, armature : tuple of float
        For each velocity, the effort at which the joint exerts no torque, N m or N, and the rotor
        inertia reflected to the joint side, kg m^2 or kg.
    stiffness, spring_reference : tuple of float
        For each velocity, stiffness of a spring, N m/rad or N/m, and the coordinate at which it
        exerts no torque, rad or m; of ball and free joints, a rotation vector and a position.
    configurations : mapping of str to tuple of float
        Named positions (nq,), such as those of MJCF's keyframes.
    has_motor : bool
        False: an effort limit of 0 is a limit, because nothing drives the joint.

    """

    name: str
    kind: str
    parent: str
    child: str
    placement: np.ndarray = field(default_factory=lambda: np.eye(4))
    axis: np.ndarray = field(default_factory=lambda: X)
    second_axis: np.ndarray = field(default_factory=lambda: Y)
    pitch: float = 0.0
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()
    velocity: tuple[float, ...] = ()
    effort: tuple[float, ...] = ()
    acceleration: tuple[float, ...] = ()
    deceleration: tuple[float, ...] = ()
    jerk: tuple[float, ...] = ()
    damping: tuple[float, ...] = ()
    damping_asymmetry: tuple[float, ...] = ()
    friction: tuple[float, ...] = ()
    friction_asymmetry: tuple[float, ...] = ()
    stribeck_friction: tuple[float, ...] = ()
    stribeck_velocity: tuple[float, ...] = ()
    effort_offset: tuple[float, ...] = ()
    stiffness: tuple[float, ...] = ()
    spring_reference: tuple[float, ...] = ()
    armature: tuple[float, ...] = ()
    configurations: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    mimic: Mimic | None = None
    has_motor: bool = True

    @property
    def nq(self) -> int:
        """Return the number of entries of q."""
        return KINDS[self.kind].nq

    @property
    def nv(self) -> int:
        """Return the number of entries of v."""
        return KINDS[self.kind].nv


def joint_screws(joint: Joint) -> list[Screw]:
    """Return one screw per coordinate; raise ValueError if the joint is spherical or free."""
    screws = KINDS[joint.kind].screws
    if screws is None:
        raise ValueError(f"joint '{joint.name}' is {joint.kind}, not made of screws")
    return screws(joint)


def _twists(joint: Joint) -> np.ndarray:
    """Return B, 6 x nv: the screws as motions in the joint's frame."""
    return np.array([[*(turn * axis), *(slide * axis)]
                     for axis, turn, slide in joint_screws(joint)]).reshape(-1, 6).T


def quaternion_matrix(quaternion: npt.ArrayLike) -> np.ndarray:
    """Return the rotation of a quaternion (x, y, z, w) of any nonzero length."""
    x, y, z, w = np.asarray(quaternion) / np.linalg.norm(quaternion)
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                     [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                     [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def joint_pose(joint: Joint, q: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the pose X(q) of the child's frame in the joint's frame, a 4x4 matrix."""
    if not KINDS[joint.kind].is_screws:
        return pose(quaternion_matrix(q[:4]), q[4:] if joint.kind == 'free' else np.zeros(3))
    T = np.eye(4)
    for B, x in zip(_twists(joint).T, q):
        T = T @ exp(B * x)
    return T


def joint_subspace(joint: Joint, q: np.ndarray) -> np.ndarray:
    """Return S(q), 6 x nv, with X^-1 dX/dt = S v in the child's axes [K, table 2: S_i]."""
    if not KINDS[joint.kind].is_screws:
        return np.eye(6)[:, :joint.nv]
    B = _twists(joint)
    S = np.zeros_like(B)
    after = np.eye(4)
    for k in reversed(range(joint.nv)):
        S[:, k] = Ad(inverse(after)) @ B[:, k]
        after = exp(B[:, k] * q[k]) @ after
    return S


def joint_subspace_rate(joint: Joint, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return dS/dt, 6 x nv: dS_l/dq_r = -ad_{S_r} S_l for r after l, and zero otherwise."""
    S = joint_subspace(joint, q)
    if not KINDS[joint.kind].is_screws:
        return np.zeros_like(S)
    return np.array([-ad(S[:, k + 1:] @ v[k + 1:]) @ S[:, k]
                     for k in range(joint.nv)]).reshape(-1, 6).T


def joint_subspace_rate_change(joint: Joint, q: np.ndarray, v: np.ndarray, dq: np.ndarray,
                               dv: np.ndarray) -> np.ndarray:
    """Return the change of dS/dt, 6 x nv, with q along dq, v along dv; d2S/dt2 for (v, a)."""
    S = joint_subspace(joint, q)
    change = np.zeros_like(S)
    if not KINDS[joint.kind].is_screws:
        return change
    dS = joint_subspace_rate(joint, q, dq)
    for k in range(joint.nv):
        later = S[:, k + 1:] @ v[k + 1:]
        d_later = dS[:, k + 1:] @ v[k + 1:] + S[:, k + 1:] @ dv[k + 1:]
        change[:, k] = -ad(d_later) @ S[:, k] - ad(later) @ dS[:, k]
    return change
