# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of a dynamics node: its model, as the parameters want it, and its latest state."""

from math import inf
import warnings

import numpy as np

from rbd_ros import (load_urdf_string, ModelError, ModelWarning, with_armature, with_floating_base,
                     with_free_joints, with_locked_joints, Workspace)
from rbd_ros.joints import KINDS
from rbd_ros.ros import convert
from rbd_ros.ros.base_states import BaseStates
from rbd_ros.ros.joint_states import JointStates
from rbd_ros.ros.markers import Markers
from rbd_ros.ros.outputs import Outputs


def base_joint(model):
    """Return the joint that lets the robot float, None if it has none."""
    if model.moving_joints:
        joint = model.moving_joints[0][0]
        if joint.kind == 'free' and joint.parent == model.link_names[0]:
            return joint
    return None


def read_model(text, parameters):
    """
    Return the robot of a description, as the parameters of the node want it.

    Parameters
    ----------
    text : str
        URDF.
    parameters : Parameters
        Gravity, floating base, locked joints and armature are used.

    Returns
    -------
    Model
        The robot.

    Raises
    ------
    ModelError
        If the description is wrong, or a parameter names a joint that is not there.

    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_urdf_string(text, gravity=parameters.gravity, strict=parameters.strict_urdf)
    if parameters.floating_base and base_joint(model) is None:
        model = with_floating_base(model)
    base = base_joint(model) if parameters.floating_base else None
    if parameters.locked_joints:
        model = with_locked_joints(model, _locked_positions(model, parameters))
    if parameters.joints:
        model = with_free_joints(model, (*parameters.joints, *([base.name] if base else [])))
    if parameters.armature_joints:
        model = with_armature(model, dict(zip(parameters.armature_joints, parameters.armature)))
    for joint, _, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws and joint is not base_joint(model):
            raise ModelError(f"joint '{joint.name}' is {joint.kind}: no joint state holds its "
                             'quaternion; only the base of a robot may float here')
    if base_joint(model) and not parameters.floating_base:
        raise ModelError(f"joint '{base_joint(model).name}' lets the robot float: set the "
                         'parameter floating_base, and publish its odometry')
    task_link = parameters.task_link
    if task_link and model.tree.link_body[model.link_index(task_link)] == 0:
        raise ModelError(f"parameter task_link names '{task_link}', which no joint moves")
    for name in parameters.command_joints:
        if name not in model.velocity_names:
            raise ModelError(f"parameter command_joints names '{name}'; the joints of "
                             f"'{model.name}' are {', '.join(model.velocity_names)}")
    return model


def _locked_positions(model, parameters):
    """Return the coordinates of the locked joints by name; zeros if the parameters give none."""
    counts = {joint.name: joint.nq for joint in model.joints}
    needed = [counts.get(name, 1) for name in parameters.locked_joints]
    given = parameters.locked_positions or (0.0,) * sum(needed)
    if len(given) != sum(needed):
        raise ModelError(f'parameter locked_positions has {len(given)} entries, the locked joints '
                         f'have {sum(needed)} coordinates')
    ends = np.cumsum(needed)
    return {name: given[end - count:end]
            for name, count, end in zip(parameters.locked_joints, needed, ends)}


class Robot:
    """
    A model and all that belongs to it; another model replaces it as a whole.

    Parameters
    ----------
    text : str
        The description that the model was made from.
    model : Model
        The robot.
    model_id : int
        Changes whenever the robot does.
    parameters : Parameters
        Command joints and the prefix of frames are used.
    before : Robot, optional
        The same robot with another load or gravity, whose state is still true.

    """

    def __init__(self, text, model, model_id, parameters, before=None):
        self.text, self.model, self.model_id = text, model, model_id
        self._parameters, prefix = parameters, parameters.frame_prefix
        self.workspace = Workspace(model)
        self.base_joint = base_joint(model)
        if before is None:
            self.states = JointStates(model)
            self.base_states = (BaseStates(model, self.base_joint, prefix)
                                if self.base_joint else None)
            self._base_came = -inf
            self.frame = prefix + model.link_names[0] if model.links else ''
            self.stamp, self.state_is_new = None, False     # of the latest complete state
        else:
            self.states, self.base_states = before.states, before.base_states
            self._base_came, self.frame = before._base_came, before.frame
            self.stamp, self.state_is_new = before.stamp, before.state_is_new
        first = self.base_joint.nv if self.base_joint else 0
        self.command_joints = parameters.command_joints or model.velocity_names[first:]
        self.command_order = np.array([model.velocity_names.index(name)
                                       for name in self.command_joints], int)
        self.outputs = Outputs(model, model_id, self.command_joints)
        self.markers = Markers(model, prefix)

    def changed(self, model, model_id):
        """Return this robot with another load or gravity."""
        return Robot(self.text, model, model_id, self._parameters, self)

    def forget(self):
        """Take no state as known any longer."""
        self.states.forget()
        if self.base_states is not None:
            self.base_states.forget()
        self._base_came, self.stamp, self.state_is_new = -inf, None, False

    def join_base(self, stamp, now, timeout):
        """Let the state of the base be the one that is nearest in time to a joint state."""
        if self.base_states is None:
            return
        state = self.base_states.nearest(convert.seconds(stamp), now, timeout)
        if state is not None:
            self.states.q[:len(state.q)], self.states.v[:len(state.v)] = state.q, state.v
            self._base_came, self.frame = state.came, state.frame

    def missing(self, now, timeout):
        """Return the joints whose position is not known, or older than a time-out, s."""
        missing = self.states.missing(now, timeout)
        if self.base_joint and now - self._base_came > timeout:
            missing = [self.base_joint.name, *missing]
        return missing

    def ages(self, now):
        """Return how long ago the state of the base and of every joint came, s, by name."""
        base = {self.base_joint.name: now - self._base_came} if self.base_joint else {}
        return {**base, **self.states.ages(now)}

    def payloads(self):
        """Return the loads that links carry: their masses, kg, by link."""
        return {link.name.removesuffix('/payload'): link.mass for link in self.model.links
                if link.is_load}
