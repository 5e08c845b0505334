# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros view``: show a robot and its dynamics in a browser, moved by sliders."""

import argparse
from time import monotonic, sleep

import numpy as np
from rbd_ros.cli.common.options import add_package_path, add_robot, load_robot, shapes_of
from rbd_ros.kinematics import forward_kinematics
from rbd_ros.model.arguments import whole_number
from rbd_ros.model.model import Model
from rbd_ros.view.sliders import Setting, Sliders
from rbd_ros.view.state import computed_state, State
from rbd_ros.view.viewer import HOST, PORT, Viewer

PERIOD = 0.05  # Time between two readings of the sliders, s.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, floating_base=True, lock=True, params=True)
    add_package_path(parser)
    parser.add_argument('--port', type=int, default=PORT,
                        help=f'port of the page; 0: any free port (default: {PORT})')
    parser.add_argument('--host', default=HOST,
                        help='address of the page (default: localhost, visible on this machine '
                             'only; 0.0.0.0: visible in the whole network)')


def run(options: argparse.Namespace) -> int:
    """Show the robot until Ctrl-C."""
    port = whole_number('--port', options.port, least=0, most=65535)
    model = load_robot(options)
    geometry = shapes_of(options, model)
    try:
        with Viewer(model, geometry, host=options.host, port=port) as viewer:
            options.ended.set()
            _show(model, viewer)
    except KeyboardInterrupt:
        pass
    return 0


def _show(model: Model, viewer: Viewer) -> None:
    sliders, start = Sliders(viewer.server.gui, model), monotonic()

    def show() -> None:
        viewer.show(monotonic() - start, _state(model, sliders.read(), viewer.scene.link))
    show()      # loads kernels
    print(f'{model.name}: {viewer.url}\nOpen this page in a browser on '
          + ('this machine' if viewer.is_local else 'any machine that can reach it')
          + '; Ctrl-C ends it.', flush=True)
    while True:
        sleep(PERIOD)
        show()


def _state(model: Model, setting: Setting, link: str) -> State:
    wrenches = {}
    if np.any(setting.force):
        turn = forward_kinematics(model, setting.q)[model.link_index(link), :3, :3]
        wrenches[link] = np.concatenate((np.zeros(3), turn.T @ setting.force))
    return computed_state(model, setting.q, setting.v, wrenches)
