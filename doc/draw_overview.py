# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Draw doc/images/overview.png: a UR10 in the viewer, and its torques, measured and computed.

`python doc/draw_overview.py BAG URDF` takes the recording of a UR10 that benchmark/trust.py names
and the ur10_robot.urdf of example-robot-data. The robot is identified on the first half of the
recording; the picture shows what follows. images/ur10.png is from the page of `rbd_ros view`.

"""

from pathlib import Path
import sys

import matplotlib
import rbd_ros
from rbd_ros import batch
from rbd_ros.identification import fit, partial, prepare, read_recording

matplotlib.use('Agg')
from matplotlib import pyplot as plt

IMAGES = Path(__file__).parent / 'images'
IDENTIFIED, SHOWN = 13.7, 9.0       # s: of the recording; after that
JOINTS = (1, 2, 3)


def draw(bag, path):
    """Write the picture."""
    arm = rbd_ros.load_urdf(path)
    recording = read_recording(bag)
    robot = fit(arm, partial(arm, prepare(arm, recording.part(end=IDENTIFIED)))).model
    new = prepare(robot, recording.part(start=IDENTIFIED, end=IDENTIFIED + SHOWN))
    time = new.time - new.time[0]
    model = batch.inverse_dynamics(robot, new.q, new.v, new.a)
    model += new.low_pass(rbd_ros.friction_torques(robot, new.v))

    figure = plt.figure(figsize=(12.0, 4.2), layout='constrained')
    left, right = figure.subfigures(1, 2, width_ratios=(0.42, 0.58))
    axes = left.subplots()
    axes.imshow(plt.imread(IMAGES / 'ur10.png'))
    axes.set_axis_off()
    for k, axes in zip(JOINTS, right.subplots(len(JOINTS), 1, sharex=True)):
        axes.plot(time, new.tau[:, k], color='0.5', linewidth=2.5, label='measured')
        axes.plot(time, model[:, k], color='#1f5fbf', linewidth=1.2, label='computed')
        axes.fill_between(time, new.tau[:, k] - model[:, k], color='#d9472b', label='difference')
        axes.set_ylabel(f'{robot.velocity_names[k].removesuffix("_joint")},\nN m')
        axes.spines[['top', 'right']].set_visible(False)
        if k == JOINTS[0]:
            axes.legend(ncols=3, loc='lower right', bbox_to_anchor=(1.0, 1.0), frameon=False)
    axes.set_xlabel('time, s')
    figure.savefig(IMAGES / 'overview.png', dpi=100)


if __name__ == '__main__':
    draw(*sys.argv[1:])
