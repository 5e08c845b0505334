# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads models from MJCF: MuJoCo compiles the document, and its bodies and joints are copied.

A body with several joints becomes a chain of links without mass. Springs, friction, armature and
limits become those of joints, keyframes their named configurations, linear couplings mimics,
``connect`` and ``weld`` constraints. Contacts and actuators are no part of a model.

"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from math import inf
from os import PathLike
import re
from typing import Any

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.lazy_exports import LazyModule
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, UrdfError
from rbd_ros.model.constraints import with_constraints
from rbd_ros.model.description import Link
from rbd_ros.model.files.equalities import (
    read_equalities, Refuse, rotation_of, with_closed_keyframes)
from rbd_ros.model.files.urdf import read_file
from rbd_ros.model.files.xml_elements import decode, is_text
from rbd_ros.model.joints import Joint, Mimic, quaternion_matrix
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import build_tree, fix, Model, warned
from rbd_ros.model.plausibility import nothing_to_compute
from rbd_ros.model.se3 import exp, pose, rotation_vector

# Kinds of elements that links and joints cannot express: the entries of `ignore`.
IGNORABLE = ('actuator', 'equality', 'flex', 'fluid', 'free joint', 'muscle', 'nonlinear',
             'plugin', 'tendon')
KINDS = {'mjJNT_FREE': 'free', 'mjJNT_BALL': 'spherical', 'mjJNT_SLIDE': 'prismatic',
         'mjJNT_HINGE': 'revolute'}
# Arrays of a compiled model that have no effect if a flag is set.
DISABLED = {
    'GRAVITY': ('opt.gravity', 'body_gravcomp'), 'SPRING': ('jnt_stiffness', 'tendon_stiffness'),
    'DAMPER': ('dof_damping', 'tendon_damping', 'actuator_damping'),
    'EQUALITY': ('eq_active0',), 'FRICTIONLOSS': ('dof_frictionloss', 'tendon_frictionloss'),
    'LIMIT': ('jnt_limited', 'tendon_limited'),
    'CONSTRAINT': ('eq_active0', 'dof_frictionloss', 'tendon_frictionloss', 'jnt_limited',
                   'tendon_limited')}


# The attribute of compiled models with the number of elements of each kind that has a name here.
COUNTS = {'body': 'nbody', 'joint': 'njnt', 'actuator': 'nu', 'tendon': 'ntendon',
          'equality': 'neq', 'key': 'nkey'}
# MuJoCo's default log file, which it creates in the current directory.
DEFAULT_LOG = 'MUJOCO_LOG.TXT'

# An optional package, which `import_mujoco` requires.
mujoco: Any = LazyModule('mujoco')


def import_mujoco(purpose: str) -> Any:
    """Return the module; if it is missing, raise ModelError with the package to install."""
    try:
        import mujoco
    except ImportError:
        raise ModelError(f'{purpose} needs the package mujoco-core, version 4.0.1 or newer: pip '
                         "install 'rbd_ros[mujoco]', on Python 3.11 or newer") from None
    # MuJoCo's warnings become exceptions here. A log file that the user has named is kept.
    log = mujoco.MjLogConfig.get()
    if log.logfile == DEFAULT_LOG:
        log.logto_file = False
        log.set()
    return mujoco


def load_mjcf(source: str | PathLike[str], *, gravity: npt.ArrayLike | None = None,
              strict: bool = False, ignore: Collection[str] = ()) -> Model:
    """
    Read a robot from MJCF, MuJoCo's format.

    Velocities and efforts of free joints are in the body's axes, angular first, and quaternions
    are x, y, z, w, as everywhere in rbd_ros. Keyframes are in ``model.configurations``.

    Parameters
    ----------
    source : str or path-like
        A file, or the text of a document.
    gravity : array_like, shape (3,), optional
        Acceleration of gravity in the world, m/s^2; default: that of the document.
    strict : bool
        Reject everything that otherwise causes a ModelWarning, such as ``gravcomp`` and ranges of
        ball joints and tendons, which are left out, and what ``ignore`` leaves out.
    ignore : collection of str
        Kinds of elements to leave out, although they act on the robot: some of ``'actuator'``
        (rotors of actuators that act on no single joint), ``'equality'`` (loops too), ``'flex'``,
        ``'fluid'``, ``'free joint'`` (armature or dry friction of its translation),
        ``'muscle'``, ``'nonlinear'`` (springs, dampers and couplings), ``'plugin'`` (of bodies)
        and ``'tendon'`` (springs, friction and armature).

    Raises
    ------
    ModelError
        If MuJoCo is missing or refuses the document, or the robot has an element that links and
        joints cannot express; the message names it.

    """
    if isinstance(ignore, str) or not set(ignore) <= set(IGNORABLE):
        raise ModelError(f'ignore must be a list of some of {", ".join(IGNORABLE)}, got '
                         f'{ignore!r}')
    compiled = compile_mjcf(source)
    name, links, joints, loops, notes = read_mjcf(compiled, ignore)
    tree = build_tree(name, links, joints, compiled.opt.gravity.copy() if gravity is None
                      else gravity, notes)
    try:
        model = with_closed_keyframes(with_constraints(tree, loops))
    except ModelError as error:
        raise ModelError(f"{error}; ignore=['equality'] leaves out all loops") from None
    return warned(model, strict, nothing_to_compute(model.links, model.joints))


def is_mjcf(text: str | bytes) -> bool:
    """Return whether the root element of a document is that of MJCF."""
    try:
        text = decode(text)
    except UrdfError:
        return False
    # One regular expression for all comments would backtrack exponentially.
    at, ink = 0, re.compile(r'\S|\Z')
    while text.startswith('<!--', at := next(ink.finditer(text, at)).start()):
        at = text.find('-->', at) + 3
        if at < 3:
            return False
    return bool(re.compile(r'<mujoco[\s/>]').match(text, at))


def compile_mjcf(source: str | bytes | PathLike[str]) -> Any:
    """Return MuJoCo's model of a file or text; raise ModelError if MuJoCo refuses it."""
    import_mujoco('reading MJCF')
    given = is_text(source)
    text: Any = source if given else read_file(source)    # type: ignore[arg-type]
    if not is_mjcf(text):
        raise ModelError('the outermost element is not <mujoco>: this is not MJCF' if given
                         else f'{source!s} is not MJCF: its outermost element is not <mujoco>')
    try:
        compiled = (mujoco.MjModel.from_xml_string(decode(text)) if given
                    else mujoco.MjModel.from_xml_path(str(source)))
    except (ValueError, mujoco.FatalError) as error:
        raise ModelError(f'MuJoCo refuses the description: {error}') from None
    for flag, arrays in DISABLED.items():
        if compiled.opt.disableflags & getattr(mujoco.mjtDisableBit, f'mjDSBL_{flag}'):
            for label in arrays:
                holder = compiled.opt if label.startswith('opt.') else compiled
                getattr(holder, label.removeprefix('opt.'))[:] = 0
    return compiled


def read_mjcf(m: Any, ignore: Collection[str]
              ) -> tuple[str, list[Link], list[Joint], list[Constraint], list[str]]:
    """Return name, links, joints, constraints, and notes on what is ignored and left out."""
    notes: list[str] = []

    def refuse(element: str, kind: str) -> None:
        if kind not in ignore:
            raise ModelError(f'{element} cannot be expressed by links and joints; '
                             f"ignore=['{kind}'] leaves it out")
        notes.append(f'{element} is ignored')

    names = {kind: element_names(m, kind) for kind in COUNTS}
    _refuse_inexpressible(m, names, refuse)
    couplings, loops = read_equalities(m, names, refuse)
    if 'equality' in ignore:
        notes += [f"equality '{one.name}', a loop of '{one.link_a}' and '{one.link_b}', is ignored"
                  for one in loops]
        loops = []
    joint_of = _single_joints(m)
    rotors = _rotors(m, names, joint_of, refuse)
    links, joints = [Link(names['body'][0])], []
    for body in range(1, m.nbody):
        name, parent = names['body'][body], names['body'][m.body_parentid[body]]
        placement = pose(rotation_of(m.body_quat[body]), m.body_pos[body])
        ids = range(m.body_jntadr[body], m.body_jntadr[body] + m.body_jntnum[body])
        for j in ids:
            coupling = couplings.get(j)
            joint = _joint(m, j, names, placement, rotors[:, j])
            if joint.nv == 1:
                joint = replace(joint, effort=(_effort_limit(m, j, joint_of),),
                                mimic=coupling if isinstance(coupling, Mimic) else None)
            # A joint's frame is at its anchor; the body's frame may be elsewhere.
            anchor = np.zeros(3) if joint.kind == 'free' else m.jnt_pos[j]
            is_body = j == ids[-1] and not anchor.any()
            child = name if is_body else f'{name}/{joint.name}'
            if not is_body:
                links.append(Link(child, is_virtual=True))
            joint = replace(joint, parent=parent, child=child)
            joints.append(fix(joint, (coupling,)) if isinstance(coupling, float) else joint)
            parent, placement = child, pose(np.eye(3), -anchor)
        if parent != name:
            joints.append(Joint(f'{name}/frame', 'fixed', parent, name, placement))
        R = rotation_of(m.body_iquat[body])
        links.append(Link(name, float(m.body_mass[body]), m.body_ipos[body].copy(),
                          R @ np.diag(m.body_inertia[body]) @ R.T))
    if loops and 0 < m.nu == len(joint_of):     # no actuator acts on several joints
        driven = {names['joint'][j] for j in joint_of.values()}
        joints = [joint if joint.kind in ('free', 'fixed') or joint.mimic or joint.name in driven
                  else replace(joint, effort=(0.0,) * joint.nv, has_motor=False)
                  for joint in joints]
    return (m.names.split(b'\0', 1)[0].decode() or 'robot', links, joints, loops,
            notes + _omissions(m, names))


def element_names(m: Any, kind: str) -> list[str]:
    """Return the unique names of all elements of a kind; nameless ones have a number."""
    given = [getattr(m, kind)(k).name for k in range(getattr(m, COUNTS[kind]))]
    result = []
    for k, name in enumerate(given):
        name = name or f'{kind}_{k}'
        while not given[k] and name in given:
            name += '_'
        result.append(name)
    return result


# -- Joints. --------------------------------------------------------------------------------------

def _joint(m: Any, j: int, names: dict[str, list[str]], placement: np.ndarray,
           rotor: np.ndarray) -> Joint:
    """Return joint j, without its links; ``placement`` is that of the body in the parent."""
    own = m.joint(j)
    kind, at = KINDS[mujoco.mjtJoint(own.type[0]).name], own.qposadr[0]
    armature, damping = own.armature + rotor[0], own.damping + rotor[1]
    friction, stiffness = own.frictionloss.copy(), float(own.stiffness[0])
    if kind == 'free':
        # MuJoCo's six entries are equal. `_refuse_inexpressible` has named those cleared.
        armature[3:] = friction[3:] = 0.0
        placement = np.eye(4)   # q is the pose in the world
    else:
        placement = placement @ pose(np.eye(3), own.pos)
    reference = _position(kind, own.qpos_spring)
    if len(reference) > 1:
        # MuJoCo's reference of ball joints is the unit quaternion.
        reference = (*rotation_vector(quaternion_matrix(reference[:4])), *reference[4:])
    fields: dict[str, Any] = {
        'damping': tuple(damping.tolist()), 'friction': tuple(friction.tolist()),
        'armature': tuple(armature.tolist()), 'stiffness': (stiffness,) * len(damping),
        'spring_reference': reference if stiffness else (),
        'configurations': {name: _position(kind, m.key_qpos[k, at:at + len(own.qpos0)])
                           for k, name in enumerate(names['key'])}}
    if kind in ('prismatic', 'revolute'):
        # At q = qpos0, not at 0, the frame is the one in the document.
        axis = own.axis.copy()
        screw = np.array([*axis, 0, 0, 0] if kind == 'revolute' else [0, 0, 0, *axis])
        placement = placement @ exp(-own.qpos0 * screw)
        lower, upper = own.range.tolist() if own.limited else (-inf, inf)
        if kind == 'revolute' and not own.limited:
            kind = 'continuous'
        fields |= {'axis': axis, 'lower': (lower,), 'upper': (upper,)}
    return Joint(names['joint'][j], kind, '', '', placement, **fields)


def _position(kind: str, qpos: np.ndarray) -> tuple[float, ...]:
    """Return q of a joint for its part of MuJoCo's qpos."""
    if kind in ('free', 'spherical'):
        *p, w, x, y, z = qpos.tolist()
        return (x, y, z, w, *p)
    return (float(qpos[0]),)


def _single_joints(m: Any) -> dict[int, int]:
    """Return the joint of each actuator that acts on it alone."""
    # NumPy's integers are equal to MuJoCo's enumerators, but not the other way round.
    of_joint = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
    return {k: int(m.actuator_trnid[k, 0]) for k in range(m.nu)
            if mujoco.mjtTrn(m.actuator_trntype[k]) in of_joint}


def _effort_limit(m: Any, j: int, joint_of: dict[int, int]) -> float:
    limit = max(map(abs, m.jnt_actfrcrange[j])) if m.jnt_actfrclimited[j] else inf
    total = 0.0
    for k in (k for k, joint in joint_of.items() if joint == j):
        force = max(map(abs, m.actuator_forcerange[k])) if m.actuator_forcelimited[k] else inf
        if (m.actuator_ctrllimited[k] and m.actuator_gaintype[k] == mujoco.mjtGain.mjGAIN_FIXED
                and m.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_NONE
                and m.actuator_dyntype[k] == mujoco.mjtDyn.mjDYN_NONE):
            force = min(force, abs(m.actuator_gainprm[k, 0])
                        * max(map(abs, m.actuator_ctrlrange[k])))
        gear = abs(m.actuator_gear[k, 0])
        total += gear * force if gear else 0.0
    return float(min(limit, total)) if total else limit


def _rotors(m: Any, names: dict[str, list[str]], joint_of: dict[int, int],
            refuse: Refuse) -> np.ndarray:
    """Return armature and damping (2, joints) that actuators add to their joints."""
    single = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)
    result = np.zeros((2, m.njnt))
    for k in range(m.nu):
        added = np.array([m.actuator_armature[k], m.actuator_damping[k]])
        if k in joint_of and mujoco.mjtJoint(m.jnt_type[joint_of[k]]) in single:
            result[:, joint_of[k]] += m.actuator_gear[k, 0] ** 2 * added
        elif added.any():
            refuse(f"the armature or damping of actuator '{names['actuator'][k]}'", 'actuator')
    return result


def _omissions(m: Any, names: dict[str, list[str]]) -> list[str]:
    """Return notes about parts of a description that do not change M, C, g and passive torques."""
    balls = m.jnt_type == mujoco.mjtJoint.mjJNT_BALL
    found = ((names['body'], m.body_gravcomp, 'gravcomp of the bodies {} is left out: gravity '
              'torques are not reduced by it'),
             (names['joint'], balls & (m.jnt_limited != 0),
              'the ranges of the ball joints {} are left out'),
             (names['tendon'], m.tendon_limited, 'the ranges of the tendons {} are left out'))
    return [text.format(listed(labels[k] for k in np.flatnonzero(which)))
            for labels, which, text in found if np.any(which)]


def _refuse_inexpressible(m: Any, names: dict[str, list[str]], refuse: Refuse) -> None:
    """Refuse elements other than equalities that links and joints cannot express."""
    if m.opt.density or m.opt.viscosity:
        refuse('the fluid (option density or viscosity)', 'fluid')
    if m.nflex:
        refuse('the deformable body (flex)', 'flex')
    for k in np.flatnonzero(m.body_plugin >= 0).tolist():
        refuse(f"the plugin of body '{names['body'][k]}'", 'plugin')
    for j, name in enumerate(names['joint']):
        joint = m.joint(j)
        if joint.type == mujoco.mjtJoint.mjJNT_FREE and (
                joint.armature[:3].any() or joint.frictionloss[:3].any()):
            refuse(f"armature or frictionloss of free joint '{name}'", 'free joint')
        if (joint.stiffnesspoly.any() or joint.dampingpoly.any() or joint.springyield.any()
                or joint.plasticadr >= 0):
            refuse(f"the nonlinear spring or damping of joint '{name}'", 'nonlinear')
    for k, actuator in enumerate(names['actuator']):
        if m.actuator_biastype[k] == mujoco.mjtBias.mjBIAS_MUSCLE:
            refuse(f"muscle '{actuator}'", 'muscle')
        if m.actuator_dampingpoly[k].any():
            refuse(f"the nonlinear damping of actuator '{actuator}'", 'nonlinear')
    for k, tendon in enumerate(names['tendon']):
        if any(np.any(values[k]) for values in (
                m.tendon_stiffness, m.tendon_damping, m.tendon_frictionloss, m.tendon_armature,
                m.tendon_stiffnesspoly, m.tendon_dampingpoly)):
            refuse(f"the spring, friction or armature of tendon '{tendon}'", 'tendon')
