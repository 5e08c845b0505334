# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot whose physics somebody else computes: MuJoCo, from the same URDF."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import finite_array, finite_vector, number, whole_number
from rbd_ros.model.configurations import normalize
from rbd_ros.model.inertial import moving_bodies
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rpy_from_rotation

# How stiff the constraints of dry friction are: a joint that friction holds creeps by the rest of
# one, and comes to rest in a few steps.
DRY, STEPS_TO_REST = 0.9999, 2.0
# The file that MuJoCo writes warnings to, in whatever directory it is started.
LOG = 'MUJOCO_LOG.TXT'
# Name of the link that is the load.
LOAD = 'rbd_ros_load'


class Load(NamedTuple):
    """
    What a robot carries.

    Attributes
    ----------
    link : str
        The link that it is fixed to.
    mass : float
        kg.
    com : array_like, shape (3,)
        Its centre of mass in the link's frame, m.
    inertia : array_like, shape (3, 3)
        About that centre, in the link's axes, kg m^2.

    """

    link: str
    mass: float
    com: npt.ArrayLike = (0.0, 0.0, 0.0)
    inertia: npt.ArrayLike = ((1e-6, 0.0, 0.0), (0.0, 1e-6, 0.0), (0.0, 0.0, 1e-6))


class Measurement(NamedTuple):
    """
    What the sensors of a robot say.

    Attributes
    ----------
    t : float
        s.
    q, v, tau : ndarray
        Positions, velocities and efforts of the drives, each with its noise.

    """

    t: float
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class MujocoRobot:
    """
    A robot in MuJoCo, moved by efforts, with what simulations like to leave out.

    MuJoCo reads inertias, axes and limits from the URDF itself; shapes are left out, and nothing
    collides. Rotors, damping, Coulomb friction, offsets, gravity and the order of the joints are
    those of the model, so they may have been identified. Joints that the model does not move are
    fixed where it has them. MuJoCo knows neither Stribeck friction nor friction that depends on
    the direction: these are left out.

    A command acts ``delay`` after it was given, and until another one does; until the first one
    does, brakes hold the robot. At any time the effort is

        the last command that is at least as old as the delay, within the limits of the drives.

    Parameters
    ----------
    urdf : str
        The URDF, as text.
    model : Model
        The robot, as `rbd_ros.load_urdf_string` reads it from the same text, with drives.
    q : array_like, shape (model.nq,), optional
        Configuration at the beginning, at rest; default: zeros.
    step : float
        Step of the integration, s.
    delay : float
        From a command to its effect, s, in whole steps.
    load : Load, optional
        What the robot carries and the model does not know.
    position_noise, velocity_noise, effort_noise : array_like, shape () or (model.nv,)
        Standard deviations of the sensors: rad or m, rad/s or m/s, N m or N.
    seed : int
        Of the noise.

    Attributes
    ----------
    model : Model
        The model that was given.
    step, time : float
        s; the time since the beginning.
    q, v : ndarray
        The true state.

    Raises
    ------
    ModelError
        If MuJoCo is not installed or refuses the robot, or joints have quaternions or mimic
        others.
    StateError
        If an argument has a wrong shape or value.

    """

    def __init__(self, urdf: str, model: Model, q: npt.ArrayLike | None = None, *,
                 step: float = 5e-4, delay: float = 0.0, load: Load | None = None,
                 position_noise: npt.ArrayLike = 0.0, velocity_noise: npt.ArrayLike = 0.0,
                 effort_noise: npt.ArrayLike = 0.0, seed: int = 0) -> None:
        self._mujoco = _mujoco()
        if model.nq != model.nv or not model.coordinates.is_identity:
            raise ModelError(f"robot '{model.name}' has joints with quaternions, or that mimic "
                             'others: it cannot be simulated in MuJoCo here; lock them')
        self.model, self.step = model, number('step', step, 1e-9)
        self._delay = round(number('delay', delay, 0.0) / self.step)
        self._noise = [finite_array(label, x, (), (model.nv,)) for label, x in (
            ('position_noise', position_noise), ('velocity_noise', velocity_noise),
            ('effort_noise', effort_noise))]
        self._rng = np.random.default_rng(seed)
        self._robot = self._compiled(urdf, load)
        self._data, self._other = (self._mujoco.MjData(self._robot) for _ in range(2))
        joints = [self._robot.joint(name) for name in model.velocity_names]
        self._q_of = np.array([int(joint.qposadr[0]) for joint in joints], int)
        self._v_of = np.array([int(joint.dofadr[0]) for joint in joints], int)
        self._set_drives()
        # The body of each link that moves, and where the link is in it.
        heads = {k: model.link_names[k] for k in moving_bodies(model)}
        self._links = {model.link_names[part]: (self._robot.body(heads[k]).id, T)
                       for k, parts in moving_bodies(model).items() for part, T in parts}
        self._pushes: dict[str, np.ndarray] = {}
        self._commands: deque[tuple[int, np.ndarray]] = deque()
        self._steps, self._tau = 0, np.zeros(model.nv)
        self._braked = True
        self._data.qpos[self._q_of] = np.zeros(model.nq) if q is None else normalize(model, q)
        self._mujoco.mj_forward(self._robot, self._data)

    @property
    def q(self) -> np.ndarray:
        """Return the true configuration."""
        return self._data.qpos[self._q_of]

    @property
    def v(self) -> np.ndarray:
        """Return the true velocity."""
        return self._data.qvel[self._v_of]

    @property
    def time(self) -> float:
        """Return the time since the beginning, s."""
        return self._steps * self.step

    def advance(self, tau: npt.ArrayLike, steps: int = 1) -> None:
        """
        Give a command, and let time pass.

        Parameters
        ----------
        tau : array_like, shape (model.nv,)
            N m or N.
        steps : int
            Number of steps.

        Raises
        ------
        StateError
            If ``tau`` has the wrong shape or is not finite, or the motion is no longer finite: the
            robot is then where it was before these steps.

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
            data.qfrc_applied[self._v_of] = self._tau - self.model.effort_offset
            for link, wrench in self._pushes.items():
                self._push(link, wrench)
            self._mujoco.mj_step(self._robot, data)
        kinds = self._mujoco.mjtWarning
        warnings = [data.warning[kind] for kind in (
            kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC)]
        if not np.all(np.isfinite(data.qvel)) or any(one.number for one in warnings):
            for one in warnings:
                one.number = 0
            self._mujoco.mj_resetData(self._robot, data)
            data.qpos[:], data.qvel[:] = before
            self._mujoco.mj_forward(self._robot, data)
            raise StateError(f'the motion of the robot is no longer finite at {self.time:g} s')

    def brake(self) -> None:
        """Bring all joints to rest at once, and hold them until another command acts."""
        self._data.qvel[:] = 0.0
        self._commands.clear()
        self._tau, self._braked = np.zeros(self.model.nv), True

    def measure(self) -> Measurement:
        """Return what the sensors say now; the efforts are those that act, or 0 under brakes."""
        q, v, tau = (x + noise * self._rng.normal(size=len(x)) if np.any(noise) else x.copy()
                     for x, noise in zip((self.q, self.v, self._tau), self._noise))
        return Measurement(self.time, q, v, tau)

    def push(self, link: str, wrench: npt.ArrayLike) -> None:
        """
        Push a link from now on.

        Parameters
        ----------
        link : str
            The link's name.
        wrench : array_like, shape (6,)
            Moment, N m, and force, N, at the link's origin and in the root's axes; zeros: no more.

        Raises
        ------
        ModelError
            If no link has that name, or no joint moves it.
        StateError
            If the wrench is not six finite numbers.

        """
        self.model.link_index(link)
        if link not in self._links:
            raise ModelError(f"link '{link}' is part of the root: no joint moves it")
        wrench = finite_array('wrench', wrench, (6,))
        self._pushes.pop(link, None)
        if wrench.any():
            self._pushes[link] = wrench

    def inverse_dynamics(self, q: npt.ArrayLike, v: npt.ArrayLike,
                         a: npt.ArrayLike) -> np.ndarray:
        """
        Return MuJoCo's torques for an acceleration, without friction.

        Parameters
        ----------
        q, v, a : array_like, shape (model.nv,)
            As for `rbd_ros.inverse_dynamics`.

        Returns
        -------
        ndarray, shape (model.nv,)
            N m or N, with those of the load, which the model does not know, and of rotors.

        """
        model, other = self.model, self._other
        other.qpos[self._q_of] = finite_vector(model, 'q', q, positions=True)
        other.qvel[self._v_of] = finite_vector(model, 'v', v)
        other.qacc[self._v_of] = a = finite_vector(model, 'a', a)
        self._mujoco.mj_kinematics(self._robot, other)
        self._mujoco.mj_comPos(self._robot, other)
        self._mujoco.mj_comVel(self._robot, other)
        tau = np.zeros(self._robot.nv)
        self._mujoco.mj_rne(self._robot, other, 1, tau)
        return tau[self._v_of] + model.armature * a

    def _push(self, link: str, wrench: np.ndarray) -> None:
        """Add the torques of a wrench."""
        body, T = self._links[link]
        point = (self._data.xpos[body]
                 + self._data.xmat[body].reshape(3, 3) @ T[:3, 3])
        self._mujoco.mj_applyFT(self._robot, self._data, wrench[3:], wrench[:3], point, body,
                                self._data.qfrc_applied)

    def _compiled(self, urdf: str, load: Load | None) -> Any:
        """Return MuJoCo's robot."""
        text = mujoco_urdf(urdf, self.model, load)
        try:
            robot = self._mujoco.MjModel.from_xml_string(text)
        except ValueError as error:
            raise ModelError(f"MuJoCo refuses robot '{self.model.name}': {error}") from None
        robot.opt.timestep, robot.opt.gravity[:] = self.step, self.model.gravity
        robot.opt.integrator = self._mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        return robot

    def _set_drives(self) -> None:
        """Give MuJoCo's joints the drives of the model."""
        robot, model, there = self._robot, self.model, self._v_of
        robot.dof_damping[there] = model.damping
        robot.dof_frictionloss[there] = model.friction
        robot.dof_armature[there] = model.armature
        robot.dof_solimp[:, :2] = DRY
        robot.dof_solref[:] = STEPS_TO_REST * self.step, 1.0
        self._mujoco.mj_setConst(robot, self._data)


def mujoco_urdf(urdf: str, model: Model, load: Load | None = None) -> str:
    """
    Return a URDF for MuJoCo: without shapes, with a load, and with joints fixed as in a model.

    Parameters
    ----------
    urdf : str
        The URDF, as text.
    model : Model
        The robot. Joints that it does not move are fixed where it has them.
    load : Load, optional
        What is fixed to a link.

    Returns
    -------
    str
        The URDF.

    Raises
    ------
    ModelError
        If the text is no XML or lacks joints of the model, or no link has the name of the load's.

    """
    from lxml import etree

    try:
        root = etree.fromstring(urdf.encode(), etree.XMLParser(resolve_entities=False))
    except etree.XMLSyntaxError as error:
        raise ModelError(f'the URDF cannot be read: {error}') from None
    for element in root.xpath('//visual | //collision | //mimic | //mujoco | //transmission'):
        element.getparent().remove(element)
    joints = {joint.name: joint for joint in model.joints}
    found = {element.get('name'): element for element in root.findall('joint')}
    lacking = [name for name in model.velocity_names if name not in found]
    if lacking:
        raise ModelError('the URDF is not that of the model: it lacks the joints '
                         + listed(lacking))
    for name, element in found.items():
        if name in joints and name not in model.velocity_names:
            element.set('type', 'fixed')
            for part in element.findall('origin'):
                element.remove(part)
            _origin(element, joints[name].placement)
    if load is not None:
        model.link_index(load.link)
        _add_load(root, load)
    settings = etree.SubElement(root, 'mujoco')
    etree.SubElement(settings, 'compiler', balanceinertia='true', fusestatic='true',
                     discardvisual='true')
    return str(etree.tostring(root, encoding='unicode'))


def _origin(element: Any, T: np.ndarray) -> None:
    """Give an element of a URDF its place."""
    from lxml import etree

    etree.SubElement(element, 'origin', xyz=_numbers(T[:3, 3]),
                     rpy=_numbers(rpy_from_rotation(T[:3, :3])))


def _add_load(root: Any, load: Load) -> None:
    """Fix a load to a link."""
    from lxml import etree

    mass = number("the load's mass", load.mass, 0.0)
    com, inertia = (finite_array(f"the load's {label}", x, shape) for label, x, shape in (
        ('com', load.com, (3,)), ('inertia', load.inertia, (3, 3))))
    part = etree.SubElement(etree.SubElement(root, 'link', name=LOAD), 'inertial')
    etree.SubElement(part, 'origin', xyz=_numbers(com), rpy='0 0 0')
    etree.SubElement(part, 'mass', value=repr(mass))
    etree.SubElement(part, 'inertia', {
        f'i{"xyz"[i]}{"xyz"[k]}': repr(float(inertia[i, k]))
        for i in range(3) for k in range(i, 3)})
    joint = etree.SubElement(root, 'joint', name=LOAD, type='fixed')
    etree.SubElement(joint, 'parent', link=load.link)
    etree.SubElement(joint, 'child', link=LOAD)


def _numbers(x: np.ndarray) -> str:
    """Return numbers as URDF has them, to the last digit."""
    return ' '.join(repr(float(one)) for one in x)


def _mujoco() -> Any:
    """Return the module, or say how to get it."""
    try:
        import mujoco
    except ImportError:
        raise ModelError('physics by MuJoCo needs the package mujoco, version 4 or newer: pip '
                         "install 'rbd_ros[sim]', on Python 3.11 or newer") from None
    # What MuJoCo warns of is an error here. Its log is kept if somebody has given it a name.
    log = mujoco.MjLogConfig.get()
    if log.logfile == LOG:
        log.logto_file = False
        log.set()
    return mujoco
