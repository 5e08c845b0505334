# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Draw doc/images/overview.png: a UR10 in the viewer, and its torques, measured and computed.

`python doc/draw_overview.py BAG URDF` takes the recording of a UR10 that benchmark/trust.py names
and the ur10_robot.urdf of example-robot-data. The robot is identified on the first half of the
recording; the picture shows what follows. A Chromium with its driver renders the robot.

"""

from io import BytesIO
from pathlib import Path
from time import sleep
import sys

import matplotlib
import numpy as np
import rbd_ros
from rbd_ros import batch
from rbd_ros.identification import fit, partial, prepare, read_recording
from rbd_ros.view.geometry import load_geometry
from rbd_ros.view.state import computed_state
from rbd_ros.view.viewer import Viewer
from selenium import webdriver

matplotlib.use('Agg')
from matplotlib import pyplot as plt

PICTURE = Path(__file__).parent / 'images/overview.png'
IDENTIFIED, SHOWN = 13.7, 9.0       # s: of the recording; after that
JOINTS = (1, 2, 3)
POSE = (0.6, -1.1, 1.3, -1.2, -1.57, 0.0)
# Of the page, at twice the pixels of the window: the robot without panels and notices.
ROBOT = slice(320, 830), slice(1640, 2310)
RENDERING = 15.0        # s, without a graphics card


def rendered(path, model):
    """Return the picture of the robot in the viewer."""
    options = webdriver.ChromeOptions()
    for one in ('headless=new', 'no-sandbox', 'use-angle=swiftshader', 'window-size=1500,900',
                'enable-unsafe-swiftshader', 'force-device-scale-factor=2'):
        options.add_argument(f'--{one}')
    with (Viewer(model, load_geometry(model, path.read_bytes(), path.parent), port=0) as viewer,
          webdriver.Chrome(options=options) as browser):
        viewer.show(0.0, computed_state(model, np.array(POSE), np.zeros(model.nv), {}))
        browser.get(viewer.url)
        sleep(RENDERING)
        return plt.imread(BytesIO(browser.get_screenshot_as_png()))[ROBOT]


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
    axes.imshow(rendered(path, arm))
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
    figure.savefig(PICTURE, dpi=100)


if __name__ == '__main__':
    draw(sys.argv[1], Path(sys.argv[2]))
