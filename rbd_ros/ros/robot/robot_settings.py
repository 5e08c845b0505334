# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters from which the node builds its robot."""

from typing import Annotated, Any, NamedTuple

from rbd_ros._internal.setting import declared, Group, Setting
from rbd_ros.control.effort_convention import EffortConvention
from rbd_ros.model.files import drive_files
from rbd_ros.model.files.uncertainty_files import MEANINGS
from rbd_ros.ros.parameters.parameters import BadParameter


def _without_prefix(values: dict[str, Any]) -> dict[str, Any]:
    return {name.partition('.')[2]: value for name, value in values.items()}


_DRIVE_SETTINGS = Group({
    'drives.joints': Setting((), 'Joints of the other drives.* parameters, in order; mimic joints '
                             'may be among them.', entry=str, of_robot=True),
    **{f'drives.{label}': Setting((), f'{meaning}.', unit, per='drives.joints', single=False,
                                  of_robot=True)
       for label, (meaning, unit) in drive_files.MEANINGS.items()}}, _without_prefix)
_UNCERTAINTY_SETTINGS = Group({
    f'uncertainty.{label}': Setting(
        (), f'{meaning} Written by rbd_ros identify.', of_robot=True,
        entry=str if label in ('joints', 'parameters') else float)
    for label, meaning in MEANINGS.items()}, _without_prefix)
_CONVENTION_SETTINGS = Group(
    {f'effort_convention.{name}': one for name, one in declared(EffortConvention).items()
     if isinstance(one, Setting)}, lambda values: EffortConvention(**_without_prefix(values)))


class RobotSettings(NamedTuple):
    """The parameters from which the robot is built."""

    gravity: Annotated[tuple[float, ...], Setting(
        (0.0, 0.0, -9.81), 'Acceleration of gravity in the axes of the root link, or of the world '
        'if mounting_rpy is set or the base floats.', 'm/s^2', changeable=True)]
    constraints: Annotated[str, Setting(
        '', 'YAML file with constraints that close loops, or with the names of the independent '
        'joints; empty: those of the description.')]
    ignore: Annotated[tuple[str, ...], Setting(
        (), 'Kinds of elements of an MJCF description to leave out, such as equality.',
        entry=str)]
    joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints that move; all others are locked at zero. Empty: all.', entry=str)]
    locked_joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints that are locked; the masses of their links are kept.', entry=str)]
    locked_positions: Annotated[tuple[float, ...], Setting(
        (), 'Positions of the locked joints; empty: zero.', 'rad or m',
        condition='finite numbers')]
    drives: Annotated[dict[str, tuple[Any, ...]], _DRIVE_SETTINGS]
    uncertainty: Annotated[dict[str, tuple[Any, ...]], _UNCERTAINTY_SETTINGS]
    effort_convention: Annotated[EffortConvention, _CONVENTION_SETTINGS]
    payload_link: Annotated[str, Setting(
        '', 'Link with a payload from the start; empty: no payload.')]
    payload_mass: Annotated[float, Setting(0.0, 'Mass of that payload.', 'kg', 0.0, 1e6)]
    payload_com: Annotated[tuple[float, ...], Setting(
        (0.0, 0.0, 0.0), 'Its centre of mass in the frame of the link.', 'm', entries='x, y and z',
        sizes=(3,), condition='finite numbers')]
    payload_inertia: Annotated[tuple[float, ...], Setting(
        (0.0,) * 6, 'Its inertia about that centre, in the axes of the link; zeros: a point mass.',
        'kg m^2', entries='ixx, iyy, izz, ixy, ixz, iyz', sizes=(6,), condition='finite numbers')]
    mounting_rpy: Annotated[tuple[float, ...], Setting(
        (0.0, 0.0, 0.0), 'Orientation of the root link in the world, as rpy in URDF; gravity is '
        'then in the axes of the world.', 'rad', entries='roll, pitch and yaw', sizes=(3,),
        condition='finite numbers')]
    observer_joints: Annotated[tuple[str, ...], Setting(
        (), 'All joints of the robot, in the order of observer_gain and contact_threshold with '
        'several entries.', entry=str)]
    floating_base: Annotated[bool, Setting(
        False, 'Whether the root link floats; its state is read from the topic odom.')]
    command_joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints of ~/effort_commands, in the order of the controller; empty: those of the '
        'model, without the coordinates of a floating base.', entry=str)]
    command_limits: Annotated[tuple[float, ...], Setting(
        (), 'Effort limits of the commanded joints, in place of those of the description; '
        'required with limit_efforts where these are 0. Empty: those of the description.',
        'N m or N', per='command_joints', condition='positive numbers')]
    task_link: Annotated[str, Setting(
        '', 'Link of the topics ~/task_* and ~/external_wrench, and of ~/task_space_dynamics '
        'requests without a link; empty: none.', changeable=True)]
    frame_prefix: Annotated[str, Setting(
        '', 'Prefix of link names in frame names, as in robot_state_publisher.')]
    max_joints: Annotated[int, Setting(
        2000, 'Largest number of joints in a description, including fixed ones.', '', 1, 100000)]
    strict_urdf: Annotated[bool, Setting(
        False, 'Refuse descriptions that otherwise cause warnings.')]

    def check(self) -> None:
        """Raise if values do not fit together."""
        if self.locked_positions and not self.locked_joints:
            raise BadParameter('locked_positions is set, but locked_joints is not')
        if bool(self.payload_link) != (self.payload_mass > 0.0):
            raise BadParameter('payload_link and payload_mass belong together: name the link, and '
                               f"give a mass above 0, got '{self.payload_link}' and "
                               f'{self.payload_mass:g} kg')
        if self.floating_base and any(self.mounting_rpy):
            raise BadParameter('mounting_rpy is for robots that are fixed: the odometry of a '
                               'floating base contains its orientation')
