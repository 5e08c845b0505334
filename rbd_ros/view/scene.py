# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot and its dynamics in a scene of viser."""

from __future__ import annotations

from math import isfinite
from typing import Any, TYPE_CHECKING

import numpy as np
from rbd_ros.dynamics import gravity_torques
from rbd_ros.kinematics import forward_kinematics, world_jacobian
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import neutral, random_configuration
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.shapes import (
    effective_masses, Ellipsoid, force_ellipsoid, inertia_solid, JointArcs, manipulability)
from rbd_ros.view.state import (
    COM, CORIOLIS, ELLIPSOIDS, EXTERNAL_TORQUES, FORCES, GRAVITY, LAYERS, LINK_COMS,
    MANIPULABILITY, MASSES, MOMENT_COLOR, NAMES, PATH, rgb, State, WRENCHES)
from rbd_ros.view.tables import short_names, UNKNOWN
from scipy.spatial.transform import Rotation

if TYPE_CHECKING:
    from viser import SceneApi

ROBOT = 'robot'
# Layers that are visible at first, and up to how many joints names are.
SHOWN = (ROBOT, COM, GRAVITY, EXTERNAL_TORQUES, WRENCHES, PATH, NAMES)
MOST_NAMES = 12
SIDES: Any = 'bottom-right', 'top-left'     # corners of names at their joints
NAME_SIZE = 0.8
NOWHERE = np.zeros((0, 3))      # a path of no length
# Radii of the arcs around one axis, as shares of the first.
RADII = {GRAVITY: 1.0, CORIOLIS: 0.8, EXTERNAL_TORQUES: 1.2}
# Sizes as shares of the robot's extent, and its smallest value, m.
ARC, ARROW, BALL, ELLIPSOID_SIZE, LINE = 0.1, 0.4, 0.025, 0.2, 0.012
LEAST_EXTENT = 0.1
# Random configurations searched for the largest gravity torque, and its smallest value, N m.
POSES, LEAST_EFFORT = 200, 1e-3


class RobotScene:
    """A robot in a scene, created once and then only moved."""

    def __init__(self, scene: SceneApi, model: Model, geometry: Geometry) -> None:
        self._scene, self._model = scene, model
        # The chosen link, at which ellipsoids are shown; size and middle of the robot, m.
        self.link = model.link_names[-1]
        poses = forward_kinematics(model, neutral(model))
        corners = poses[:, :3, 3].min(axis=0), poses[:, :3, 3].max(axis=0)
        self.extent = max(LEAST_EXTENT, float(np.linalg.norm(corners[1] - corners[0])))
        self.middle = 0.5 * (corners[0] + corners[1])
        self._layers = {name: scene.add_frame(f'/{name}', show_axes=False,
                                              visible=is_shown(name, model))
                        for name in (ROBOT, *LAYERS)}
        self._links = np.array(sorted(geometry.shapes), int)
        self._shapes = [scene.add_glb(f'/{ROBOT}/{k}', geometry.shapes[k]) for k in self._links]
        self._add_inertias()
        self._arcs = JointArcs(model)
        self._full = full_efforts(model)
        self._lines: dict[str, tuple[Any, Any]] = {name: self._add_arrows(name) for name in RADII}
        self._forces = {part: self._add_arrow(f'/{WRENCHES}/{part}', rgb(color))
                        for part, color in (('moments', MOMENT_COLOR),
                                            ('forces', LAYERS[WRENCHES].color))}
        # Not in a frame that moves with the base: places of the past are those in the world.
        self._path = scene.add_line_segments(
            '/past', np.zeros((1, 2, 3)), rgb(LAYERS[PATH].color),
            thickness=0.5 * LINE * self.extent, visible=False)
        # On both sides in turn: origins of two joints of a wrist or a shoulder often coincide.
        self._short = short_names(model.velocity_names)
        self._names = {k: scene.add_label(f'/{NAMES}/{k}', self._short[k],
                                          anchor=SIDES[k % 2], font_screen_scale=NAME_SIZE)
                       for k in self._arcs.columns}
        self._at_link = {name: scene.add_icosphere(
            f'/{name}/ellipsoid', 1.0, LAYERS[name].color, opacity=0.4, cast_shadow=False)
            for name in (MANIPULABILITY, FORCES, MASSES)}

    def _add_inertias(self) -> None:
        scene, model, ball = self._scene, self._model, BALL * self.extent
        self._com = scene.add_icosphere(f'/{COM}/ball', ball, LAYERS[COM].color)
        self._heavy = np.array([k for k, link in enumerate(model.links) if link.mass > 0.0], int)
        links = [model.links[k] for k in self._heavy]
        self._coms = np.array([[*link.com, 1.0] for link in links]).reshape(-1, 4)
        solids = [inertia_solid(link) for link in links]
        self._turns = np.array([axes for axes, _ in solids]).reshape(-1, 3, 3)
        sizes = np.array([size for _, size in solids]).reshape(-1, 3)
        self._batches = []
        if not links:
            return
        from trimesh.creation import icosphere
        sphere = icosphere(subdivisions=2, radius=0.5)
        for name, scales, opacity in ((LINK_COMS, np.full(sizes.shape, ball), None),
                                      (ELLIPSOIDS, sizes, 0.5)):
            self._batches.append(scene.add_batched_meshes_simple(
                f'/{name}/batch', sphere.vertices, sphere.faces,
                np.tile([1.0, 0.0, 0.0, 0.0], (len(links), 1)), np.zeros((len(links), 3)),
                batched_scales=scales, batched_colors=rgb(LAYERS[name].color),
                opacity=opacity, lod='off', cast_shadow=False))

    def _add_arrow(self, name: str, color: tuple[int, int, int]) -> Any:
        size = LINE * self.extent
        return self._scene.add_arrows(name, np.zeros((1, 2, 3)), color,
                                      shaft_radius=0.5 * size, head_radius=1.5 * size,
                                      head_length=3.0 * size, visible=False)

    def _add_arrows(self, name: str) -> tuple[Any, Any]:
        """Return the lines of arcs, and their heads."""
        color = rgb(LAYERS[name].color)
        lines = self._scene.add_line_segments(f'/{name}/lines', np.zeros((1, 2, 3)), color,
                                              thickness=LINE * self.extent, visible=False)
        return lines, self._add_arrow(f'/{name}/heads', color)

    def set_visible(self, layer: str, visible: bool) -> None:
        self._layers[layer].visible = visible

    def is_visible(self, layer: str) -> bool:
        return bool(self._layers[layer].visible)

    def update(self, state: State, path: np.ndarray = NOWHERE) -> None:
        """Move everything to a state; `path` (n, 3), m, is where the chosen link has been."""
        poses = forward_kinematics(self._model, state.q)
        if state.base is not None:
            for frame in self._layers.values():
                frame.position = state.base[:3, 3]
                frame.wxyz = _quaternions(state.base[None, :3, :3])[0]
        _place(self._path, np.stack((path[:-1], path[1:]), axis=1))
        for label, place in zip(self._names.values(), poses[self._arcs.links, :3, 3]):
            label.position = place
        for shape, position, quaternion in zip(
                self._shapes, poses[self._links, :3, 3], _quaternions(poses[self._links, :3, :3])):
            shape.position, shape.wxyz = position, quaternion
        if np.all(np.isfinite(state.com)):
            self._com.position = state.com
        self._move_inertias(poses)
        for name, efforts in ((GRAVITY, state.gravity), (CORIOLIS, state.coriolis),
                              (EXTERNAL_TORQUES, state.external)):
            self._draw_arcs(name, poses, efforts)
        self._draw_wrenches(poses, state)
        self._draw_ellipsoids(poses, state)

    def write_names(self, state: State) -> None:
        """Write the effort of each joint beside its name."""
        for k, label in self._names.items():
            unit = 'N m' if self._model.angular[k] else 'N'
            effort = float(state.effort[k])
            label.text = f'{self._short[k]}  ' + (
                f'{round(effort, 1) + 0.0} {unit}' if isfinite(effort) else UNKNOWN)

    def _move_inertias(self, poses: np.ndarray) -> None:
        at = poses[self._heavy]
        centres = (at @ self._coms[:, :, None])[:, :3, 0]
        for batch in self._batches:
            batch.batched_positions = centres.astype(np.float32)
            batch.batched_wxyzs = _quaternions(at[:, :3, :3] @ self._turns).astype(np.float32)

    def _draw_arcs(self, name: str, poses: np.ndarray, efforts: np.ndarray) -> None:
        points = self._arcs.lines(poses, efforts, self._full, RADII[name] * ARC * self.extent)
        lines, heads = self._lines[name]
        pieces = np.stack((points[:, :-1], points[:, 1:]), axis=2).reshape(-1, 2, 3)
        _place(lines, pieces)
        ends = points[:, -1]    # the head continues the last piece of the arc
        along = ends - points[:, -2]
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        size = 3.0 * LINE * self.extent
        _place(heads, np.stack((ends - 0.01 * size * along, ends + size * along), axis=1))

    def _draw_wrenches(self, poses: np.ndarray, state: State) -> None:
        """Draw moments and forces; the largest of each has the length `ARROW`."""
        links = [self._model.link_index(link) for link in state.wrenches]
        wrenches = np.array(list(state.wrenches.values())).reshape(-1, 2, 3)
        turned = np.einsum('kab,kpb->pka', poses[links, :3, :3], wrenches)
        starts = poses[links, :3, 3]
        for arrow, vectors in zip(self._forces.values(), turned):
            sizes = np.linalg.norm(vectors, axis=1)
            use = sizes > 1e-6
            length = ARROW * self.extent / max(sizes.max(initial=0.0), 1e-6)
            _place(arrow, np.stack((starts, starts + length * vectors), axis=1)[use])

    def ellipsoids(self, state: State) -> dict[str, Ellipsoid]:
        """Return the ellipsoids of the chosen link, by layer."""
        J = world_jacobian(self._model, state.q, self.link)[3:]
        return {MANIPULABILITY: manipulability(J), FORCES: force_ellipsoid(J),
                MASSES: effective_masses(J, state.M)}

    def _draw_ellipsoids(self, poses: np.ndarray, state: State) -> None:
        """Draw the ellipsoids of the chosen link, all with the size `ELLIPSOID_SIZE`."""
        if not any(self._layers[name].visible for name in self._at_link):
            return
        position = poses[self._model.link_index(self.link), :3, 3]
        for name, found in self.ellipsoids(state).items():
            ball = self._at_link[name]
            size = ELLIPSOID_SIZE * self.extent / max(found.semi_axes.max(), 1e-12)
            ball.position, ball.wxyz = position, _quaternions(found.axes[None])[0]
            ball.scale = tuple(np.maximum(size * found.semi_axes, 1e-4).tolist())


def is_shown(layer: str, model: Model) -> bool:
    """Return whether a layer is visible at first."""
    return layer in SHOWN and (layer != NAMES or model.nv <= MOST_NAMES)


def full_efforts(model: Model) -> np.ndarray:
    """Return the largest gravity torque, N m, or force, N, in random poses per kind of joint."""
    rng = np.random.default_rng(0)
    largest = np.max([np.abs(gravity_torques(model, random_configuration(model, rng)))
                      for _ in range(POSES)], axis=0, initial=LEAST_EFFORT)
    return np.where(model.angular, largest[model.angular].max(initial=LEAST_EFFORT),
                    largest[~model.angular].max(initial=LEAST_EFFORT))


def _place(node: Any, points: np.ndarray) -> None:
    """Give a node its lines or arrows, or hide it if there are none."""
    node.visible = len(points) > 0
    if len(points):
        node.points = points.astype(np.float32)


def _quaternions(R: np.ndarray) -> np.ndarray:
    """Return the quaternions w, x, y, z of rotations."""
    if not len(R):
        return np.zeros((0, 4))
    return np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1)
