# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot simulated by MuJoCo from the same URDF or MJCF."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, RbdError, StateError, UrdfError
from rbd_ros.model.arguments import finite_array, finite_vector, number, refuse_loops, whole_number
from rbd_ros.model.files.mjcf import element_names, import_mujoco, is_mjcf, load_mjcf
from rbd_ros.model.files.urdf_writer import (
    append, document, set_child, with_angles, write_joint)
from rbd_ros.model.files.xml_elements import decode, parse
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import normalize
from rbd_ros.model.se3 import quaternion_of_matrix
from rbd_ros.simulation.simulator import Measurement

# MuJoCo's dry friction and closed loops are soft constraints. Their impedance, just below 1,
# limits the creep of a joint held by friction, and the gaps of loops; their time constant, in
# steps, is how fast the joint comes to rest, or a gap closes.
IMPEDANCE, TIME_CONSTANT = 0.9999, 2.0
AXIS_LENGTH = 0.1    # m, distance of the two points that hold a revolute constraint
PAYLOAD = 'rbd_ros_load'    # name of the body that is added for a payload
# Of principal inertias, relative to the largest.
ROUNDING = 1e-12


class Load(NamedTuple):
    """A payload that is fixed to a link."""

    link: str
    mass: float     # kg
    com: npt.ArrayLike = (0.0, 0.0, 0.0)    # centre of mass in the link's frame, m
    # About the centre of mass, in the link's axes, kg m^2.
    inertia: npt.ArrayLike = ((1e-6, 0.0, 0.0), (0.0, 1e-6, 0.0), (0.0, 0.0, 1e-6))


class MujocoRobot:
    """
    A robot in MuJoCo with torque inputs, command delay, sensor noise and a hidden payload.

    MuJoCo reads inertias, axes and limits from the description itself, and nothing collides. Rotor
    inertias, springs, damping, Coulomb friction, effort offsets, gravity and the order of the
    joints are those of the model, so they may come from an identification. Joints that the model
    does not move are fixed at their position in the model (not of MJCF). MuJoCo supports neither
    Stribeck nor asymmetric friction: these are left out.

    The effort is the last command that is at least as old as the delay, within the effort limits;
    brakes hold the robot until the first command acts.

    Parameters
    ----------
    urdf, model
        The URDF or MJCF, as text, and the robot that `rbd_ros.load_urdf_string` or `load_mjcf`
        reads from it, with drives. ModelError is raised if MuJoCo is not installed or rejects the
        robot, or if joints have quaternions or mimic others. Equality constraints close the loops
        of a robot, to about a micrometre; distances cannot be kept.
    q : array_like, shape (model.nq,), optional
        Initial configuration, at rest; default: zeros.
    step, delay : float
        Integration step, and delay of commands, rounded to whole steps, s.
    load : Load, optional
        A payload that the model does not have.
    position_noise : array_like, shape () or (model.nq,)
        Standard deviation of measured positions, rad or m.
    velocity_noise, effort_noise : array_like, shape () or (model.nv,)
        Those of the other sensors: rad/s or m/s, N m or N.
    seed : int
        Seed of the noise.

    Attributes
    ----------
    time, q, v : float, ndarray, ndarray
        Time since the beginning, s; true configuration and velocity.

    """

    def __init__(self, urdf: str, model: Model, q: npt.ArrayLike | None = None, *,
                 step: float = 5e-4, delay: float = 0.0, load: Load | None = None,
                 position_noise: npt.ArrayLike = 0.0, velocity_noise: npt.ArrayLike = 0.0,
                 effort_noise: npt.ArrayLike = 0.0, seed: int = 0) -> None:
        self._mujoco = import_mujoco('physics by MuJoCo')
        # The robot without its closed loops.
        self._tree = tree = model.unconstrained
        if tree.nq != tree.nv or not tree.coordinates.is_identity:
            raise ModelError(f"robot '{model.name}' has joints with quaternions, or that mimic "
                             'others: it cannot be simulated in MuJoCo here; lock them')
        self.model, self.step = model, number('step', step, 1e-9)
        self._delay = round(number('delay', delay, 0.0) / self.step)
        self._noise = [finite_array(label, x, (), (n,)) for label, x, n in (
            ('position_noise', position_noise, model.nq),
            ('velocity_noise', velocity_noise, model.nv),
            ('effort_noise', effort_noise, model.nv))]
        self._rng = np.random.default_rng(seed)
        self._robot = self._compile(urdf, load)
        self._data, self._scratch = (self._mujoco.MjData(self._robot) for _ in range(2))
        names = element_names(self._robot, 'joint')
        # Places of all joints, and of the independent ones.
        joints = [names.index(name) for name in tree.velocity_names]
        self._q_of = self._robot.jnt_qposadr[joints]
        self._all_v_of = self._robot.jnt_dofadr[joints]
        self._v_of = self._all_v_of if model.loops is None else self._all_v_of[model.loops.own]
        self._set_drives()
        # MuJoCo's body of each moving link.
        self._links = {name: k for k, name in enumerate(element_names(self._robot, 'body'))
                       if self._robot.body_weldid[k]}
        self._wrenches: dict[str, np.ndarray] = {}
        # Step at which each pending command takes effect, and the command.
        self._commands: deque[tuple[int, np.ndarray]] = deque()
        self._steps, self._tau = 0, np.zeros(model.nv)
        self._braked = True
        self._data.qpos[self._q_of] = normalize(model, np.zeros(model.nq) if q is None else q)
        self._mujoco.mj_forward(self._robot, self._data)

    @property
    def q(self) -> np.ndarray:
        return self._data.qpos[self._q_of]

    @property
    def v(self) -> np.ndarray:
        return self._data.qvel[self._v_of]

    @property
    def time(self) -> float:
        return self._steps * self.step

    def advance(self, tau: npt.ArrayLike, steps: int = 1) -> None:
        """
        Give a command (model.nv,), N m or N, and simulate some steps.

        After a StateError (invalid ``tau``, or a motion that diverges) the robot is where it was.

        """
        tau = finite_vector(self.model, 'tau', tau)
        self._commands.append((self._steps + self._delay, tau))
        limit, data = self.model.effort_limit, self._data
        before = data.qpos.copy(), data.qvel.copy()
        for _ in range(whole_number('steps', steps, 0)):
            while self._commands and self._commands[0][0] <= self._steps:
                self._tau = np.clip(self._commands.popleft()[1], -limit, limit)
                self._braked = False
            self._steps += 1
            if self._braked:
                continue
            data.qfrc_applied[:] = 0.0
            data.qfrc_applied[self._all_v_of] = -self._tree.effort_offset
            data.qfrc_applied[self._v_of] += self._tau
            for link, wrench in self._wrenches.items():
                body = self._links[link]
                self._mujoco.mj_applyFT(self._robot, data, wrench[3:], wrench[:3],
                                        data.xpos[body], body, data.qfrc_applied)
            self._mujoco.mj_step(self._robot, data)
        kinds = self._mujoco.mjtWarning
        diverges = any(data.warning[kind].number for kind in (
            kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC))
        if diverges or not np.all(np.isfinite(data.qvel)):
            self._mujoco.mj_resetData(self._robot, data)
            data.qpos[:], data.qvel[:] = before
            self._mujoco.mj_forward(self._robot, data)
            raise StateError(f'the motion of the robot is no longer finite at {self.time:g} s')

    def brake(self) -> None:
        """Stop all joints at once and hold them until another command acts."""
        self._data.qvel[:] = 0.0
        self._commands.clear()
        self._tau, self._braked = np.zeros(self.model.nv), True

    def measure(self) -> Measurement:
        """Return the sensor outputs; efforts are those that act, or 0 under brakes."""
        q, v, tau = (x + noise * self._rng.normal(size=len(x)) if np.any(noise) else x.copy()
                     for x, noise in zip((self.q, self.v, self._tau), self._noise))
        return Measurement(self.time, q, v, tau)

    def push(self, link: str, wrench: npt.ArrayLike) -> None:
        """
        Apply a constant wrench to a link from now on; raise ModelError if no joint moves it.

        It is moment, N m, and force, N, at the link's origin and in the root's axes; zeros end it.

        """
        self.model.link_index(link)
        if link not in self._links:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it")
        wrench = finite_array('wrench', wrench, (6,))
        self._wrenches.pop(link, None)
        if wrench.any():
            self._wrenches[link] = wrench

    def inverse_dynamics(self, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike) -> np.ndarray:
        """Return MuJoCo's torques (model.nv,), N m or N, with rotors and payload, no friction."""
        model, scratch = self.model, self._scratch
        refuse_loops(model, 'MujocoRobot.inverse_dynamics')
        scratch.qpos[self._q_of] = finite_vector(model, 'q', q, positions=True)
        scratch.qvel[self._v_of] = finite_vector(model, 'v', v)
        scratch.qacc[self._v_of] = a = finite_vector(model, 'a', a)
        self._mujoco.mj_kinematics(self._robot, scratch)
        self._mujoco.mj_comPos(self._robot, scratch)
        self._mujoco.mj_comVel(self._robot, scratch)
        tau = np.zeros(self._robot.nv)
        self._mujoco.mj_rne(self._robot, scratch, 1, tau)
        return tau[self._v_of] + model.armature * a

    def _compile(self, urdf: str, load: Load | None) -> Any:
        """Return MuJoCo's model of a URDF or MJCF, without contacts and actuators."""
        model, mjcf, flags = self.model, is_mjcf(urdf), self._mujoco.mjtDisableBit
        if mjcf and load_mjcf(urdf).velocity_names != model.velocity_names:
            raise ModelError('the MJCF is not that of the model, or joints are locked: it has '
                             'other joints')
        text = urdf if mjcf else mujoco_urdf(urdf, model)
        try:
            spec = self._mujoco.MjSpec.from_string(text)
            if load is not None:
                _add_load(spec, model, load)
            if not mjcf:
                spec.compiler.fusestatic = False    # each link is a body
                self._close_loops(spec)
            robot = spec.compile()
        except RbdError:
            raise
        except ValueError as error:
            raise ModelError(f"MuJoCo refuses robot '{model.name}': {error}") from None
        if not mjcf:
            robot.eq_solimp[:, :2] = IMPEDANCE
            robot.eq_solref[:] = TIME_CONSTANT * self.step, 1.0
        robot.opt.disableflags |= flags.mjDSBL_CONTACT | flags.mjDSBL_ACTUATION
        # Rotors are part of the model's armature and damping.
        robot.actuator_armature[:] = robot.actuator_damping[:] = robot.body_gravcomp[:] = 0.0
        robot.opt.timestep, robot.opt.gravity[:] = self.step, model.gravity
        robot.opt.integrator = self._mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        return robot

    def _close_loops(self, spec: Any) -> None:
        """Add equality constraints that close the loops of a robot."""
        kinds = self._mujoco.mjtEq
        for one in self.model.constraints:
            if one.kind == 'distance':
                raise ModelError(f"constraint '{one.name}' keeps a distance: it cannot be "
                                 'simulated in MuJoCo here')
            # A revolute constraint holds two points of its axis.
            heights = (0.0, AXIS_LENGTH) if one.kind == 'revolute' else (0.0,)
            for k, height in enumerate(heights):
                names = [f'{one.name}/{end}/{k}' for end in 'ab']
                for name, link, T in zip(names, (one.link_a, one.link_b),
                                         (one.placement_a, one.placement_b)):
                    spec.body(link).add_site(name=name, pos=T[:3, 3] + height * T[:3, 2],
                                             quat=np.roll(quaternion_of_matrix(T[:3, :3]), 1))
                spec.add_equality(
                    type=kinds.mjEQ_WELD if one.kind == 'weld' else kinds.mjEQ_CONNECT,
                    objtype=self._mujoco.mjtObj.mjOBJ_SITE, name1=names[0], name2=names[1])

    def _set_drives(self) -> None:
        robot, model, there = self._robot, self._tree, self._all_v_of
        robot.dof_damping[there] = model.damping
        robot.dof_frictionloss[there] = model.friction
        robot.dof_armature[there] = model.armature
        robot.jnt_stiffness[robot.dof_jntid[there]] = model.stiffness
        robot.qpos_spring[self._q_of] = model.spring_reference
        robot.dof_solimp[:, :2] = IMPEDANCE
        robot.dof_solref[:] = TIME_CONSTANT * self.step, 1.0
        self._mujoco.mj_setConst(robot, self._data)


def _add_load(spec: Any, model: Model, load: Load) -> None:
    """Add a payload as a body; raise StateError if a number is not finite."""
    mass = number("the load's mass", load.mass, 0.0)
    com, inertia = (finite_array(f"the load's {label}", x, shape) for label, x, shape in (
        ('com', load.com, (3,)), ('inertia', load.inertia, (3, 3))))
    body = spec.body(load.link)
    if body is None:
        raise ModelError(f"MuJoCo's robot '{model.name}' has no link '{load.link}'")
    # MuJoCo takes principal inertias that are zero, of a point or a rod, but no such matrix.
    principal, axes = np.linalg.eigh(inertia)
    axes[:, 0] *= np.linalg.det(axes)
    principal[np.abs(principal) < ROUNDING * principal[2]] = 0.0
    if 0.0 < principal[2] - principal[0] - principal[1] < ROUNDING * principal[2]:
        principal[2] = principal[0] + principal[1]      # else MuJoCo balances a rod's
    body.add_body(name=PAYLOAD, mass=mass, ipos=com, explicitinertial=True, inertia=principal,
                  iquat=np.roll(quaternion_of_matrix(axes), 1))


def mujoco_urdf(urdf: str, model: Model) -> str:
    """Return a URDF for MuJoCo: without shapes, joints fixed as in the model."""
    try:
        root = parse(decode(urdf))
    except UrdfError as error:
        raise ModelError(f'the URDF cannot be read: {error}') from None
    for element in root.xpath('//visual | //collision | //mimic | //mujoco | //transmission'
                              ' | /robot/constraint'):
        element.getparent().remove(element)
    with_angles(root)    # MuJoCo ignores quaternions in a URDF
    elements = {element.get('name'): element for element in root.iterchildren('joint')}
    missing = [name for name in model.unconstrained.velocity_names if name not in elements]
    if missing:
        raise ModelError('the URDF is not that of the model: it lacks the joints '
                         + listed(missing))
    for joint in model.joints:
        if joint.kind == 'fixed' and joint.name in elements:
            write_joint(elements[joint.name], joint)
    set_child(append(root, 'mujoco'), 'compiler',
              {'balanceinertia': 'true', 'fusestatic': 'true', 'discardvisual': 'true'})
    return document(root)
