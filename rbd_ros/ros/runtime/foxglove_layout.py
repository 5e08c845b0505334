# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Prints the layout for Foxglove with the joints of a robot: foxglove_layout ROBOT [NODE].

Foxglove finds the numbers of a message by their place, not by the name of a joint.

"""

from collections.abc import Sequence
import json
import sys

from rbd_ros import load_urdf, RbdError
from rbd_ros.ros.runtime.share_directory import share

FIRST = '[0]'    # ends the path of a number that each joint has


def layout(names: Sequence[str], node: str = 'dynamics') -> str:
    """Return a layout for joints, in the order of the robot's coordinates, and a node."""
    text = share('config', 'foxglove_layout.json').read_text(encoding='utf-8')
    content = json.loads(text.replace('/dynamics', f'/{node}'))
    for panel in content['configById'].values():
        paths = panel.get('paths', [])
        if paths and paths[0]['value'].endswith(FIRST):
            # The order of measured efforts is that of the driver.
            is_ours = paths[0]['value'].startswith(f'/{node}')
            panel['paths'] = [
                {**paths[k % len(paths)], 'value': paths[0]['value'].replace(FIRST, f'[{k}]'),
                 'label': name if is_ours else f'[{k}]'} for k, name in enumerate(names)]
    return json.dumps(content, indent=2)


def main() -> None:
    """Print the layout for the robot and the node on the command line."""
    if not 2 <= len(sys.argv) <= 3 or sys.argv[1].startswith('-'):
        raise SystemExit('usage: foxglove_layout ROBOT.urdf [NODE] > layout.json')
    try:
        print(layout(load_urdf(sys.argv[1]).velocity_names, *sys.argv[2:]))
    except RbdError as error:
        raise SystemExit(f'foxglove_layout: {error}') from None
