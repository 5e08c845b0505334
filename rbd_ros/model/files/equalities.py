# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Equalities of MuJoCo: couplings of joints, and constraints that close loops."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from rbd_ros._internal.lazy_exports import LazyModule
from rbd_ros.errors import StateError
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import Mimic, quaternion_matrix
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import gap_in_words
from rbd_ros.model.positions.configurations import normalize, on_closure
from rbd_ros.model.se3 import pose

mujoco: Any = LazyModule('mujoco')

# Raises ModelError, or notes that an element (first) of an ignorable kind (second) is left out.
Refuse: TypeAlias = Callable[[str, str], None]


def read_equalities(m: Any, names: Mapping[str, Sequence[str]], refuse: Refuse
                    ) -> tuple[dict[int, Mimic | float], list[Constraint]]:
    """Return the couplings of a compiled model by the joint that follows, and the loops."""
    # A float is the position of a joint that an equality fixes. Equalities that are not linear,
    # couple more than two joints or join a mocap body are passed to `refuse`.
    found: dict[int, Mimic | float] = {}
    loops: list[Constraint] = []
    leader_of: dict[int, int] = {}
    bodies, joints = names['body'], names['joint']
    for k in np.flatnonzero(m.eq_active0).tolist():
        name = f"equality '{names['equality'][k]}'"
        if loop := read_loop(m, k, bodies, names['equality'][k]):
            mocap = [one for one in (loop.link_a, loop.link_b)
                     if m.body_mocapid[m.body_rootid[bodies.index(one)]] >= 0]
            if mocap:
                refuse(f"{name}, which follows the mocap body '{mocap[0]}',", 'equality')
            else:
                loops.append(loop)
            continue
        linear = _linear(m, k, name, refuse)
        if linear is None:
            continue
        terms, constant = linear
        pairs = [(one, [*set(terms) - {one}]) for one in terms]
        for follower, others in pairs:
            if len(terms) <= 2 and follower not in found and not any(
                    _leads_to(leader_of, other, follower) for other in others):
                break
        else:
            refuse(f'{name}, which couples joints that other equalities couple or more than two,',
                   'equality')
            continue
        at = constant / terms[follower]
        if others:
            leader_of[follower] = others[0]
            found[follower] = Mimic(joints[others[0]], -terms[others[0]] / terms[follower], at)
        else:
            found[follower] = at

    def position(k: int) -> float | None:
        """Return the position of a joint that equalities fix, also as that of a fixed leader."""
        one = found.get(k)
        if not isinstance(one, Mimic):
            return one
        leader = position(leader_of[k])
        return None if leader is None else one.multiplier * leader + one.offset

    return {k: one if (fixed := position(k)) is None else fixed for k, one in found.items()}, loops


def read_loop(m: Any, k: int, bodies: Sequence[str], name: str) -> Constraint | None:
    """Return the loop that equality k closes, None if it is neither ``connect`` nor ``weld``."""
    mjtEq, mjtObj = mujoco.mjtEq, mujoco.mjtObj
    kind = mjtEq(m.eq_type[k])
    if kind not in (mjtEq.mjEQ_CONNECT, mjtEq.mjEQ_WELD):
        return None
    ids, data = (int(m.eq_obj1id[k]), int(m.eq_obj2id[k])), m.eq_data[k]
    if m.eq_objtype[k] == mjtObj.mjOBJ_SITE:
        placements = [pose(rotation_of(m.site_quat[i]), m.site_pos[i]) for i in ids]
        ids = tuple(int(m.site_bodyid[i]) for i in ids)
    elif kind == mjtEq.mjEQ_CONNECT:
        # The anchor in the axes of both bodies.
        placements = [pose(np.eye(3), data[:3]), pose(np.eye(3), data[3:6])]
    else:
        # The anchor in the second body, its place in the first one, and the axes of the second.
        placements = [pose(rotation_of(data[6:10]), data[3:6]), pose(np.eye(3), data[:3])]
    return Constraint(name, 'point' if kind == mjtEq.mjEQ_CONNECT else 'weld',
                      bodies[ids[0]], bodies[ids[1]], placements[0], placements[1])


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a quaternion in MuJoCo's order, w first."""
    return quaternion_matrix(np.roll(quaternion, -1))


def _leads_to(leader_of: dict[int, int], joint: int, wanted: int) -> bool:
    """Return whether a chain of leaders from a joint reaches another."""
    while joint != wanted and joint in leader_of:
        joint = leader_of[joint]
    return joint == wanted


def _linear(m: Any, k: int, name: str,
            refuse: Refuse) -> tuple[dict[int, float], float] | None:
    """Return coefficients c by joint, and constant d, of equality k: sum c q = d; or refuse it."""
    kind, first, second = m.eq_type[k], int(m.eq_obj1id[k]), int(m.eq_obj2id[k])
    if kind == mujoco.mjtEq.mjEQ_JOINT:
        sides = [({j: 1.0}, float(m.qpos0[m.jnt_qposadr[j]])) for j in (first, second) if j >= 0]
    elif kind == mujoco.mjtEq.mjEQ_TENDON:
        sides = []
        for tendon in (first, second):
            if tendon >= 0:
                own = slice(m.tendon_adr[tendon], m.tendon_adr[tendon] + m.tendon_num[tendon])
                if np.any(m.wrap_type[own] != mujoco.mjtWrap.mjWRAP_JOINT):
                    refuse(name, 'equality')
                    return None
                sides.append((dict(zip(m.wrap_objid[own].tolist(), m.wrap_prm[own].tolist())),
                              float(m.tendon_length0[tendon])))
    else:
        refuse(name, 'equality')
        return None
    # x - x_0 = a + b (y - y_0) + ...; without a second side, x - x_0 = a.
    a, b, *higher = m.eq_data[k, :5].tolist()
    if len(sides) == 2 and any(higher):
        refuse(f'{name}, a polynomial of higher degree,', 'nonlinear')
        return None
    terms, constant = dict(sides[0][0]), sides[0][1] + a
    for other, start in sides[1:]:
        constant -= b * start
        for j, coefficient in other.items():
            terms[j] = terms.get(j, 0.0) - b * coefficient
    return {j: x for j, x in terms.items() if x}, constant


def with_closed_keyframes(model: Model) -> Model:
    """Close the loops in keyframes, with a warning: MuJoCo's constraints let them open."""
    joints, notes = {joint.name: joint for joint in model.joints}, []
    for name, q in model.configurations.items() if model.loops else ():
        try:
            on_closure(model, q)
        except StateError:
            assert model.loops is not None
            note = f"keyframe '{name}': {gap_in_words(model.loops, q)}"
            try:
                q = normalize(model, q)
                notes.append(f'{note}; the positions of dependent joints are changed to close it')
            except StateError:
                notes.append(f'{note}, and cannot be closed: correct its positions')
        for joint, i, _ in model.unconstrained.moving_joints:
            joints[joint.name] = replace(joints[joint.name], configurations={
                **joints[joint.name].configurations, name: tuple(q[i].tolist())})
    if not notes:
        return model
    model = rebuild(model, joints=list(joints.values()))
    return replace(model, warnings=(*model.warnings, *notes))
