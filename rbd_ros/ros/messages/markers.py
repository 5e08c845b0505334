# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Markers for RViz: centres of mass, torques, inertias and external wrenches."""

from array import array
from collections.abc import Hashable, Iterator, Mapping
from time import monotonic

from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
import numpy as np
import numpy.typing as npt
from rbd_ros._internal.cdr import Field, numbers, Stamp, Template
from rbd_ros.model.description import Link
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import quaternion_of_matrix
from rbd_ros.ros.convert import template, time
from rbd_ros.view.shapes import inertia_solid, JointAxes
from rbd_ros.view.state import (
    COM, CORIOLIS, ELLIPSOIDS, EXTERNAL_TORQUES, GRAVITY, LAYERS, LINK_COMS, MOMENT_COLOR,
    WRENCHES)
from rbd_ros.workspace.memory.results import DynamicsTerms
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

ARROW = 0.4                         # m, length for the largest torque or force so far
ARROW_SCALE = 0.015, 0.03, 0.05     # m, diameters of shaft and head, and length of the head
COM_DIAMETER = 0.06                 # m, of the ball for the whole robot ...
LINK_DIAMETER = 0.025               # ... and of the balls for the links
WRENCH_LIFETIME = 2                 # s that the wrenches of a request are shown
RESEND_PERIOD = 1.0                 # s between two messages with the same unchanged markers
PART = 100                          # Unchanged markers in a message


def _color(color: tuple[float, float, float], opacity: float = 0.9) -> ColorRGBA:
    red, green, blue = color
    return ColorRGBA(r=red, g=green, b=blue, a=opacity)


RED, BLUE = _color(LAYERS[COM].color), _color(LAYERS[LINK_COMS].color, 0.6)
GREY, GREEN = _color(LAYERS[ELLIPSOIDS].color, 0.3), _color(LAYERS[WRENCHES].color)
VIOLET = _color(MOMENT_COLOR)
NAMESPACES = (COM, LINK_COMS, GRAVITY, CORIOLIS, EXTERNAL_TORQUES, ELLIPSOIDS, WRENCHES)
# Color of torque arrows, and their distance from the joint axis, m.
TORQUES = {name: (_color(LAYERS[name].color), distance) for name, distance in (
    (GRAVITY, 0.0), (CORIOLIS, 0.03), (EXTERNAL_TORQUES, -0.03))}


class Markers:
    """
    The marker array of one robot, created once and then only moved.

    A red ball is the centre of mass of the robot, blue balls are those of its links. Grey
    ellipsoids of uniform density have the masses and inertias of the links. Arrows along joint
    axes are torques, all on one scale: gravity orange, Coriolis cyan, external torques red. Green
    and violet arrows are the external forces and moments of a request. RViz can switch each of
    `NAMESPACES`. `prefix` is that of link names in frame names.

    """

    def __init__(self, model: Model, prefix: str = '') -> None:
        self._model, self._prefix = model, prefix
        self._links = [k for k, link in enumerate(model.links) if link.mass > 0.0]
        self._coms = np.array([[*model.links[k].com, 1.0] for k in self._links]).reshape(-1, 4)
        self._joints = JointAxes(model)
        self._largest = 1e-9
        self._frame: str | None = None
        self._shown: tuple[str, ...] = ()
        self._ellipsoids: dict[int, bytes] = {}     # By number of the part
        self._next = 0
        self._ellipsoids_due = 0.0
        self._wrenches: Mapping[str, np.ndarray] = {}

    def show_wrenches(self, wrenches: Mapping[str, np.ndarray]) -> None:
        """Show wrenches, (moment, force) by link in its axes, in the next array."""
        self._wrenches = {link: wrench for link, wrench in wrenches.items()
                          if link in self._model.link_names}

    def _template(self, frame: str, torques: tuple[str, ...]) -> Template:
        com = _marker(COM, 0, Marker.SPHERE, RED, COM_DIAMETER)
        fields: dict[Hashable, Field] = {COM: numbers(com.pose.position, 'x', 'y', 'z')}
        link_coms = _marker(LINK_COMS, 0, Marker.SPHERE_LIST, BLUE, LINK_DIAMETER)
        fields[LINK_COMS] = _points(link_coms, len(self._links))
        markers = [com, link_coms]
        for space in torques:
            for k in range(len(self._joints.columns)):
                arrow = _marker(space, k, Marker.ARROW, TORQUES[space][0], ARROW_SCALE)
                fields[space, k] = _points(arrow, 2)
                markers.append(arrow)
        for marker in markers:
            marker.header.frame_id = frame
        return template(MarkerArray(markers=markers), [marker.header for marker in markers],
                        fields)

    def update(self, stamp: Time | Stamp, frame: str, poses: np.ndarray, terms: DynamicsTerms,
               coriolis: np.ndarray | None = None,
               external: np.ndarray | None = None) -> Iterator[MarkerArray | bytes]:
        """
        Yield the arrays that move the markers to a state, as messages or serialized.

        The first array deletes the markers of other robots; a later one deletes all if some
        quantity is no longer known. `poses`, shape (links, 4, 4), are those of all links in
        `frame`. Coriolis and external torques, shape (nv,), N m or N, are not shown if None.

        """
        torques = {space: given for space, given in (
            (GRAVITY, terms.g), (CORIOLIS, coriolis), (EXTERNAL_TORQUES, external))
            if given is not None}
        shown = tuple(torques)
        if set(self._shown) - set(shown) or self._frame is None:
            # Delete the markers of another robot, or of this one with another payload.
            yield MarkerArray(markers=[Marker(action=Marker.DELETEALL)])
            self._ellipsoids_due = 0.0
        if (frame, shown) != (self._frame, self._shown):
            self._frame, self._shown = frame, shown
            self._moved = self._template(frame, shown)
        centres = (poses[self._links] @ self._coms[:, :, None])[:, :3, 0]
        yield self._moved.fill(stamp, {COM: terms.com, LINK_COMS: centres,
                                       **self._torque_arrows(poses, torques)})
        if monotonic() >= self._ellipsoids_due:
            yield self._next_ellipsoids()
        arrows = self._wrench_arrows(stamp, frame, poses)
        if arrows:
            yield MarkerArray(markers=arrows)

    def _next_ellipsoids(self) -> bytes:
        """Return the next part of the ellipsoids; many would stop the stream of states."""
        links, joints, count = self._model.links, self._model.joints, -(-len(self._links) // PART)
        part, self._next = self._next, (self._next + 1) % max(count, 1)
        self._ellipsoids_due = monotonic() + RESEND_PERIOD / max(count, 1)
        if part not in self._ellipsoids:
            # A payload has no frame of its own: it is drawn in the frame of its link.
            self._ellipsoids[part] = serialize_message(MarkerArray(markers=[
                _ellipsoid(k, links[k], self._prefix + (
                    joints[k - 1].parent if links[k].is_load else links[k].name))
                for k in self._links[PART * part:PART * (part + 1)]]))
        return self._ellipsoids[part]

    def _torque_arrows(self, poses: np.ndarray, torques: Mapping[str, np.ndarray]
                       ) -> dict[Hashable, np.ndarray]:
        self._largest = max(self._largest, *(float(np.max(np.abs(given), initial=0.0))
                                             for given in torques.values()))
        joints, (axes, across) = self._joints, self._joints.directions(poses)
        ends: dict[Hashable, np.ndarray] = {}
        for space, given in torques.items():
            # Arrows of one joint are side by side.
            starts = poses[joints.links, :3, 3] + TORQUES[space][1] * across
            lengths = ARROW / self._largest * given[joints.columns]
            arrows = np.stack((starts, starts + lengths[:, None] * axes), axis=1)
            ends.update({(space, k): arrow for k, arrow in enumerate(arrows)})
        return ends

    def _wrench_arrows(self, stamp: Time | Stamp, frame: str, poses: np.ndarray) -> list[Marker]:
        """Return arrows for the wrenches of the latest request, to be shown once."""
        markers = []
        for link, wrench in self._wrenches.items():
            k = self._model.link_index(link)
            for number, color, part in ((2 * k, VIOLET, wrench[:3]),
                                        (2 * k + 1, GREEN, wrench[3:])):
                size = np.linalg.norm(part)
                if size > 0.0:
                    marker = _marker(WRENCHES, number, Marker.ARROW, color, ARROW_SCALE)
                    marker.header.stamp, marker.header.frame_id = time(stamp), frame
                    marker.lifetime = Duration(sec=WRENCH_LIFETIME)
                    start = poses[k, :3, 3]
                    marker.points = [Point(), Point()]
                    _place(marker.points[0], start)
                    _place(marker.points[1], start + ARROW / size * (poses[k, :3, :3] @ part))
                    markers.append(marker)
        self._wrenches = {}
        return markers


def _ellipsoid(number: int, link: Link, frame: str) -> Marker:
    axes, diameters = inertia_solid(link)
    marker = _marker(ELLIPSOIDS, number, Marker.SPHERE, GREY, diameters)
    # Without a stamp RViz uses the latest transform.
    marker.header.frame_id, marker.frame_locked = frame, True
    _place(marker.pose.position, link.com)
    turn = marker.pose.orientation
    turn.x, turn.y, turn.z, turn.w = quaternion_of_matrix(axes).tolist()
    return marker


def _marker(space: str, number: int, kind: int, color: tuple[float, ...],
            scale: npt.ArrayLike) -> Marker:
    marker = Marker(ns=space, id=number, type=kind, action=Marker.ADD, color=color)
    _place(marker.scale, np.broadcast_to(scale, 3))
    return marker


def _points(marker: Marker, number: int) -> Field:
    def write(flat: 'array[float]') -> None:
        marker.points = [Point(x=x, y=y, z=z)
                         for x, y, z in zip(flat[0::3], flat[1::3], flat[2::3])]
    return (number, 3), write


def _place(point: Point, xyz: np.ndarray) -> None:
    point.x, point.y, point.z = xyz.tolist()
