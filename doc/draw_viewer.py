# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Draw doc/images/view.png: a Panda in the viewer lifts what its URDF lacks. Needs Chromium."""

from dataclasses import replace
from pathlib import Path
import sys
import time

import numpy as np
import rbd_ros
from rbd_ros.view.geometry import load_geometry
from rbd_ros.view.state import computed_state, State
from rbd_ros.view.viewer import Viewer

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / 'test' / folder) for folder in ('rigs', 'subjects')]

from browser import chromium, click, labelled, webdriver    # noqa: E402, I100
from robots import example_urdf    # noqa: E402, I100

PICTURE, SIZE = HERE / 'images' / 'view.png', (1500, 840)   # px
# s: between states, when the payload is lifted, the last state, and until meshes have arrived.
FRAME, LIFTED, END, PATIENCE = 0.05, 40.0, 60.0, 20.0
LINK, PAYLOAD, CENTER = 'panda_hand', 2.0, (0.0, 0.0, 0.12)     # kg, m
NEARER = 0.6    # distance of the camera, as a share of the initial one
# rad and m, and s: each joint swings about a middle, with a period of its own.
MIDDLE = np.array([-0.9, 0.3, 0.0, -1.9, 0.0, 2.1, 0.8, 0.02])
SWING = np.array([0.9, 0.35, 0.3, 0.4, 0.3, 0.3, 0.6, 0.0])
PERIODS = np.array([14.0, 9.0, 20.0, 12.0, 15.0, 10.0, 17.0, 1.0])


def lifting(model: rbd_ros.Model, t: float) -> State:
    """Return a measured state of the Panda at a time, s."""
    rng, pace = np.random.default_rng(round(t / FRAME)), 2.0 * np.pi / PERIODS
    q, v, a = (MIDDLE + SWING * np.sin(pace * t), SWING * pace * np.cos(pace * t),
               -SWING * pace ** 2 * np.sin(pace * t))
    lifted = rbd_ros.with_payload(model, LINK, PAYLOAD, com=CENTER) if t > LIFTED else model
    deviation = 0.005 * model.effort_limit
    deviation[-1] = 0.0     # the fingers rest
    effort = rbd_ros.inverse_dynamics(lifted, q, v, a) + deviation * rng.normal(size=model.nv)
    return replace(computed_state(model, q, v, {}), effort=effort, deviation=deviation,
                   external=rbd_ros.inverse_dynamics(model, q, v, a) - effort)


def draw(picture: Path) -> None:
    """Write the picture."""
    path = example_urdf('panda.urdf')
    model = rbd_ros.load_urdf(path)
    geometry = load_geometry(model, path.read_bytes(), path.parent)
    with Viewer(model, geometry, port=0, effort='measured') as viewer, chromium(size=SIZE) as page:
        camera = viewer.server.initial_camera
        camera.position = tuple(NEARER * np.subtract(camera.position, camera.look_at)
                                + camera.look_at)
        page.get(viewer.url)
        labelled(page, 'Plot').click()
        click(page, "//*[@role='option'][.='panda_joint2']")
        for button in page.find_elements('css selector', '.mantine-Notification-closeButton'):
            button.click()
        click(page, "//*[contains(@class, 'icon-minus')]/..")
        canvas = page.find_element('css selector', 'canvas')
        webdriver.ActionChains(page).move_to_element(canvas).perform()
        for k in range(int(END / FRAME)):
            viewer.panels.remember(k * FRAME, lifting(model, k * FRAME))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            viewer.show(END, lifting(model, END))
            time.sleep(1.0)
        page.save_screenshot(str(picture))


if __name__ == '__main__':
    draw(PICTURE)
    print(PICTURE, 'written')
