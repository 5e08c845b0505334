# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Draw doc/images/closed_loops.svg from the robots with closed loops in urdf/.

Each link connects the joints and constraints on it, in the configuration in which all joints are
at 0. Run it after every change of these files; test/docs/test_documentation.py compares them with
the picture.

"""

from pathlib import Path
import warnings
from xml.sax.saxutils import escape

import numpy as np
import rbd_ros
from rbd_ros.model.files.constraint_elements import constraints_of
from rbd_ros.model.files.xml_elements import decode, parse

HERE = Path(__file__).parent
PICTURE, URDF = HERE / 'images' / 'closed_loops.svg', HERE.parent / 'urdf'
ROBOTS = ('four_bar', 'slider_crank', 'five_bar', 'palletizer', 'delta')
# px
PANEL, HEIGHT, MARGIN, TITLE, LEGEND = 250, 250, 34, 48, 34
COLOURS = ('#e07b1a', '#8a9099', '#2f6db5', '#5b9a68', '#a06cb0', '#c0a030')
GROUND, CUT = '#444', '#c22'
# Lighter links are carriers of coordinates, kg.
LIGHT = 0.01
# Length of the lines along which joints slide, m.
TRACK = 0.12


class Robot:
    """The places of the links, joints and constraints of a robot in the picture."""

    def __init__(self, name: str) -> None:
        text = (URDF / f'{name}.urdf').read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', rbd_ros.ModelWarning)
            self.model = rbd_ros.load_urdf_string(text)
        poses = dict(zip(self.model.link_names,
                         rbd_ros.forward_kinematics(self.model, np.zeros(self.model.nq))))
        self.links: dict[str, list[np.ndarray]] = {name: [] for name in poses}
        self.cuts, self.joints, self.tracks = [], [], []
        for joint in self.model.joints:
            T = poses[joint.parent] @ joint.placement
            if joint.kind == 'prismatic':
                self.tracks.append((T[:3, 3], T[:3, :3] @ joint.axis))
            else:
                self.links[joint.parent].append(T[:3, 3])
                if joint.kind != 'fixed':
                    self.joints.append((T[:3, 3], joint.effort[0] > 0.0, joint.name))
            self.links[joint.child].append(T[:3, 3])
        for one in constraints_of(parse(decode(text))):
            place = (poses[one.link_a] @ one.placement_a)[:3, 3]
            self.cuts.append(place)
            for link in (one.link_a, one.link_b):
                self.links[link].append(place)
        self.masses = {link.name: link.mass for link in self.model.links}


def project(point: np.ndarray) -> np.ndarray:
    """Return x to the right and z upwards, slightly from the side and from above."""
    return np.array([point[0] + 0.45 * point[1], point[2] + 0.2 * point[1]])


def panel(name: str, left: int) -> list[str]:
    """Return the elements of the picture of a robot."""
    robot = Robot(name)
    places = np.array([project(p) for points in robot.links.values() for p in points])
    low, high = places.min(axis=0), places.max(axis=0)
    scale = min((PANEL - 2 * MARGIN) / (high[0] - low[0]), (HEIGHT - MARGIN) / (high[1] - low[1]))
    middle = 0.5 * (low + high)

    def at(point: np.ndarray) -> tuple[float, float]:
        x, z = (project(point) - middle) * scale
        return round(left + PANEL / 2 + x, 1) + 0.0, round(TITLE + HEIGHT / 2 - z, 1) + 0.0

    motors = [name for _, is_motor, name in robot.joints if is_motor]
    count = sum(joint.nv for joint in robot.model.joints)
    lines = [f'<text x="{left + PANEL // 2}" y="20" class="title">{escape(name)}</text>',
             f'<text x="{left + PANEL // 2}" y="37">{count} joints, {len(motors)} '
             f'motor{"s" if len(motors) > 1 else ""}</text>']
    for place, axis in robot.tracks:
        (x1, y1), (x2, y2) = at(place - TRACK * axis), at(place + TRACK * axis)
        lines.append(f'<path d="M{x1} {y1}L{x2} {y2}" class="track"/>')
    root = robot.model.link_names[0]
    for k, (link, points) in enumerate(robot.links.items()):
        if robot.masses[link] < LIGHT or not points:
            continue
        colour = GROUND if link == root else COLOURS[k % len(COLOURS)]
        corners = 'L'.join(f'{x} {y}' for x, y in dict.fromkeys(map(at, points)))
        lines.append(f'<path d="M{corners}z" stroke="{colour}" fill="{colour}" class="link"/>')
    for place, is_motor, _ in robot.joints:
        x, y = at(place)
        lines.append(f'<circle cx="{x}" cy="{y}" r="{6 if is_motor else 4}" '
                     f'class="{"motor" if is_motor else "passive"}"/>')
    for place in robot.cuts:
        x, y = at(place)
        lines.append(f'<circle cx="{x}" cy="{y}" r="7" class="cut"/>')
    return lines


def legend(top: int) -> list[str]:
    """Return the elements that explain the symbols."""
    lines = []
    for x, mark, text in ((40, 'motor', 'joint with a motor'), (230, 'passive', 'passive joint'),
                          (400, 'cut', 'constraint, which closes a loop')):
        size = {'motor': 6, 'passive': 4, 'cut': 7}[mark]
        lines += [f'<circle cx="{x}" cy="{top}" r="{size}" class="{mark}"/>',
                  f'<text x="{x + 14}" y="{top + 4}" class="legend">{text}</text>']
    x = 650
    return [*lines, f'<path d="M{x} {top}L{x + 30} {top}" class="track"/>',
            f'<text x="{x + 38}" y="{top + 4}" class="legend">direction in which a link slides'
            '</text>']


def draw() -> str:
    """Return the picture."""
    width, height = PANEL * len(ROBOTS), TITLE + HEIGHT + LEGEND
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}">',
             '<style>text{font:12px sans-serif;text-anchor:middle;fill:#222}'
             '.title{font:bold 15px sans-serif}.legend{text-anchor:start}'
             '.link{stroke-width:7;stroke-linejoin:round;stroke-linecap:round;fill-opacity:0.35}'
             '.track{stroke:#777;stroke-width:1.5;stroke-dasharray:5 4;fill:none}'
             '.motor{fill:#222}.passive{fill:white;stroke:#222;stroke-width:1.5}'
             f'.cut{{fill:none;stroke:{CUT};stroke-width:2.5}}</style>',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for k, name in enumerate(ROBOTS):
        lines += panel(name, k * PANEL)
    return '\n'.join([*lines, *legend(height - LEGEND // 2), '</svg>']) + '\n'


if __name__ == '__main__':
    PICTURE.write_text(draw(), encoding='utf-8')
    print(PICTURE, 'written')
