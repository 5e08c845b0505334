# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a push moves the tool as a spring would, in each direction."""

from functools import partial

import numpy as np
from rbd_ros import forward_kinematics, world_jacobian
from rbd_ros.ros.demo.robots import BEARABLE, DemoFailed, overload, tip
from rbd_ros.ros.demo.stage import Sample, Stage
from rbd_ros.ros.demo.story import Check, Story, Strip
from rbd_ros.ros.nodes.simulated_control import gains, poses, ROBOT

# N m/rad and N/m; N
STIFFNESS, ROTARY, PUSH = 500.0, 20.0, 10.0
FOUND = 0.05           # share by which the stiffness that is found may be wrong
# s: before a push, during it, and how much of each end is averaged.
FREE, PUSHED, READ = 1.5, 3.0, 0.5
# m: the tool has six directions if a pose moves it this much by a turn of 1 rad.
LEAST = 0.02


class ImpedanceStory(Story):
    """Three pushes, along x, y and z, while the tool is held by springs."""

    title = 'pushed along x, y and z'
    words = (f'Springs of {STIFFNESS:g} N/m hold the last link (cartesian_impedance), and '
             f'something pushes it by {PUSH:g} N, along x, y and z in turn: it gives way by '
             f'{1e3 * PUSH / STIFFNESS:g} mm.')
    needs_mujoco = 'mujoco_robot alone can be pushed'
    bound = np.inf
    word = 'way'

    def _choose_start(self) -> np.ndarray:
        """Return the pose in which the link moves best in all directions."""
        model = self.model
        self.link = tip(model)
        able = {float(np.linalg.svd(world_jacobian(model, q, self.link), compute_uv=False)[-1]): q
                for q in poses(model) if np.max(overload(model, q)) <= BEARABLE}
        if not able or model.nv < 6 or max(able) < LEAST:
            raise DemoFailed(f"'{self.link}', the last link of '{model.name}', cannot move in all "
                             'six directions, so it cannot give way in each of them')
        return able[max(able)]

    def play(self, stage: Stage) -> list[Check]:
        """Push the link in three directions."""
        stage.play('torque_controller', robot={**ROBOT, 'push_link': self.link}, parameters={
            **gains(self.model, stage.start), 'mode': 'cartesian_impedance',
            'task_link': self.link,
            'cartesian_impedance.stiffness': [ROTARY] * 3 + [STIFFNESS] * 3})
        checks = []
        for axis, name in enumerate('xyz'):
            samples = stage.without_pause(partial(self._push, stage, axis))
            before, pushed = (self._place(samples, end)
                              for end in (samples[0].t + FREE, samples[-1].t))
            way = (pushed - before)[axis]
            stage.note = f"'{self.link}' gave way by {1e3 * way:.1f} mm along {name}"
            found = PUSH / way
            checks.append(Check(
                f"{PUSH:g} N along {name} moved '{self.link}' by {1e3 * way:.2f} mm: "
                f'{found:.0f} N/m are {100.0 * abs(found / STIFFNESS - 1.0):.1f} % off '
                f'{STIFFNESS:g} N/m; at most {100.0 * FOUND:g} % are asked for.',
                bool(abs(found / STIFFNESS - 1.0) <= FOUND)))
        stage.push(np.zeros(3))
        stage.watch('held by springs', FREE)
        return checks

    def _push(self, stage: Stage, axis: int) -> list[Sample]:
        """Leave the link alone, and then push it once."""
        stage.push(np.zeros(3))
        free = stage.watch('held by springs', FREE)
        stage.push(PUSH * np.eye(3)[axis])
        return free + stage.watch(f"pushed along {'xyz'[axis]}", PUSHED)

    def _place(self, samples: list[Sample], end: float) -> np.ndarray:
        """Return where the link is just before a time, s."""
        return np.mean([self._at(sample.q) for sample in samples
                        if end - READ < sample.t <= end], axis=0)

    def _at(self, q: np.ndarray) -> np.ndarray:
        """Return where the link is, m."""
        return forward_kinematics(self.model, q)[self.model.link_index(self.link)][:3, 3].copy()

    def strips(self, stage: Stage) -> list[Strip]:
        """Return the way of the link, and what springs would give."""
        way = np.array([self._at(sample.q) for sample in stage.samples]) - self._at(stage.start)
        asked = np.zeros_like(way)
        ends = [phase.first for phase in stage.phases[1:]] + [len(way)]
        for phase, end in zip(stage.phases, ends):
            if phase.name.startswith('pushed'):
                asked[phase.first:end, 'xyz'.index(phase.name[-1])] = PUSH / STIFFNESS
        return [Strip(f'{self.link}, {axis}', 'mm', 1e3 * x, 1e3 * y)
                for axis, x, y in zip('xyz', way.T, asked.T)]
