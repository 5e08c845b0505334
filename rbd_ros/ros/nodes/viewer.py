# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A running robot in a browser: its joint states and the outputs of the dynamics node."""

import os
from time import monotonic
from typing import Any, ClassVar
import webbrowser

from rbd_ros import ModelError, RbdError
from rbd_ros._internal.setting import Setting
from rbd_ros.ros.nodes.plain_node import PlainNode
from rbd_ros.ros.nodes.viewed_robot import ViewedRobot
from rbd_ros.ros.robot.read_model import load_quietly
from rbd_ros.ros.robot.subscriptions import DESCRIPTION_QOS
from rbd_ros.ros.runtime.part import steady_timer
from rbd_ros.ros.runtime.report import guarded
from rbd_ros.view.geometry import load_geometry
from rbd_ros.view.viewer import HOST, PORT, Viewer
from std_msgs.msg import String

NICENESS = 10    # Lower priority than nodes that control a robot
EFFORT = 'measured'    # Label of measured efforts, which are shown next to computed ones

_PARAMETERS = {
    'robot_description': Setting(
        '', 'URDF or MJCF of the robot; empty: it is read from the topic.'),
    'host': Setting(HOST, 'Address of the page; localhost: only for this machine; 0.0.0.0: for '
                    'its whole network.'),
    'port': Setting(PORT, 'Port of the page; 0: a free one, which is logged.', '', 0, 65535),
    'open': Setting(False, 'Open the page in the browser of this machine.'),
    'package_path': Setting((), 'Folders that contain packages, for package:// meshes; searched '
                            'before AMENT_PREFIX_PATH and ROS_PACKAGE_PATH.', entry=str),
    'rate': Setting(30.0, 'Largest update rate of the page.', 'Hz', 1.0, 60.0),
    'frame_prefix': Setting('', 'Prefix of link names in frame names.')}


class ViewerNode(PlainNode):
    """
    Shows the newest state of a running robot in a browser; subscribes only while a page is open.

    Without a dynamics node the torques are computed here. `alone`: the node has the process to
    itself, and lowers its priority.

    """

    program: ClassVar[str] = 'viewer'
    parameters: ClassVar[dict[str, Setting]] = _PARAMETERS

    def __init__(self, *, alone: bool = False, **options: Any) -> None:
        super().__init__(**options)
        if alone:
            os.nice(NICENESS)
        self.viewer: Viewer | None = None
        self._robot: ViewedRobot | None = None
        self._text = ''
        self._start = monotonic()
        steady_timer(self, 1.0 / self._given['rate'], self._on_timer)
        if self._given['robot_description']:
            self._describe(self._given['robot_description'])
        else:
            self.create_subscription(String, 'robot_description', self._on_description,
                                     DESCRIPTION_QOS)
            self._log.info('waiting for the robot description')

    def finish(self) -> None:
        """Close the page."""
        if self.viewer is not None:
            self.viewer.close()

    def _on_description(self, message: String) -> None:
        try:
            self._describe(message.data)
        except RbdError as error:
            # Without a page the node is useless: the port is taken, or a package is missing.
            if self.viewer is None and not isinstance(error, ModelError):
                raise
            self._log.error(f'robot description refused: {error}')

    def _describe(self, text: str) -> None:
        if text == self._text:
            return
        model = load_quietly(text)
        geometry = load_geometry(model, text, None, self._given['package_path'])
        for note in geometry.notes:
            self._log.warning(note)
        if self.viewer is None:
            self.viewer = Viewer(model, geometry, host=self._given['host'],
                                 port=self._given['port'], effort=EFFORT)
            # Without a screen, a text browser would occupy the terminal.
            if self._given['open'] and {'DISPLAY', 'WAYLAND_DISPLAY'} & set(os.environ):
                webbrowser.open(self.viewer.url)
        else:
            self.viewer.draw(model, geometry, EFFORT)
        states, dynamics = map(self.resolve_topic_name, ('joint_states', 'dynamics/dynamics'))
        self.viewer.server.gui.add_markdown(
            f'Follows `{states}`, and `{dynamics}` if a node publishes it; otherwise torques and '
            'matrices are computed here.')
        self._text = text
        if self._robot is not None:
            self._robot.listen(False)
        self._robot = ViewedRobot(self, model, self._given['frame_prefix'])
        self._log.info(f"'{model.name}' is shown at {self.viewer.url}")

    @guarded
    def _on_timer(self) -> None:
        if self._robot is None or self.viewer is None:
            return
        self._robot.listen(bool(self.viewer.server.get_clients()))
        state = self._robot.newest()
        if state is not None:
            self.viewer.show(monotonic() - self._start, state)
