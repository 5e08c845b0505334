# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Centre of mass and gravity torques as markers for RViz."""

from geometry_msgs.msg import Point
import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

PERIOD = 1.0 / 30.0                 # s, between two arrays at the least
ARROW = 0.4                         # m, for a torque as large as any so far
COM_DIAMETER = 0.06                 # m, of the ball for the whole robot ...
LINK_DIAMETER = 0.025               # ... and of those for the links
RED = ColorRGBA(r=0.9, g=0.2, b=0.15, a=0.9)
BLUE = ColorRGBA(r=0.15, g=0.4, b=0.9, a=0.6)
ORANGE = ColorRGBA(r=1.0, g=0.6, b=0.1, a=0.9)


class Markers:
    """
    The marker array of one robot, made once and then only moved.

    A red ball is the centre of mass of the robot, blue ones are those of its links. An orange
    arrow along the axis of each joint is its gravity torque.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __init__(self, model):
        self._model = model
        self._root = model.link_names[0] if model.links else ''
        self._links = [k for k, link in enumerate(model.links) if link.mass > 0.0]
        self._coms = np.array([[*model.links[k].com, 1.0] for k in self._links]).reshape(-1, 4)
        # Joints that turn about or slide along one axis and copy no other.
        self._joints = [(k + 1, joint, model.velocity_names.index(joint.name))
                        for k, joint in enumerate(model.joints)
                        if joint.name in model.velocity_names]
        self._largest = 1e-9
        com, links = self._marker('com', 0, Marker.SPHERE), self._marker(
            'link_com', 0, Marker.SPHERE_LIST)
        for marker, diameter, color in ((com, COM_DIAMETER, RED), (links, LINK_DIAMETER, BLUE)):
            marker.scale.x = marker.scale.y = marker.scale.z = diameter
            marker.color = color
        links.points = [Point() for _ in self._links]
        arrows = [self._marker('gravity_torque', k, Marker.ARROW)
                  for k in range(len(self._joints))]
        for marker in arrows:
            marker.points = [Point(), Point()]
            marker.scale.x, marker.scale.y, marker.scale.z = 0.015, 0.03, 0.05
            marker.color = ORANGE
        self.message = MarkerArray(markers=[com, links, *arrows])

    def _marker(self, space, number, kind):
        marker = Marker(ns=space, id=number, type=kind, action=Marker.ADD)
        marker.header.frame_id = self._root
        return marker

    def update(self, stamp, poses, terms):
        """
        Move the markers to a state.

        Parameters
        ----------
        stamp : builtin_interfaces.msg.Time
            Of the state.
        poses : ndarray, shape (links, 4, 4)
            Of all links in the root's frame.
        terms : DynamicsTerms
            The centre of mass and the gravity torques are shown.

        Returns
        -------
        visualization_msgs.msg.MarkerArray
            The same array each time.

        """
        com, links, *arrows = self.message.markers
        _place(com.pose.position, terms.com)
        centres = (poses[self._links] @ self._coms[:, :, None])[:, :3, 0]
        for point, centre in zip(links.points, centres):
            _place(point, centre)
        self._largest = max(self._largest, float(np.max(np.abs(terms.g), initial=0.0)))
        for marker, (k, joint, column) in zip(arrows, self._joints):
            length = ARROW * terms.g[column] / self._largest
            _place(marker.points[0], poses[k, :3, 3])
            _place(marker.points[1], poses[k, :3, 3] + length * (poses[k, :3, :3] @ joint.axis))
        for marker in self.message.markers:
            marker.header.stamp = stamp
        return self.message


def _place(point, xyz):
    point.x, point.y, point.z = xyz.tolist()
