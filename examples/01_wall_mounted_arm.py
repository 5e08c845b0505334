# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
An arm on a wall, with a tool: mounting and payload change its gravity torques.

Neither is part of its URDF. The root is turned by 90 degrees about y, so that gravity points along
its own x axis.

"""

import pathlib

import numpy as np
import rbd_ros

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
MOUNTING = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
TOOL, PLACE = 1.2, (0.0, 0.0, 0.06)
Q = np.array([0.3, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])


def main():
    """Print the gravity torques on the floor and on the wall, and return them."""
    floor = rbd_ros.load_urdf(URDF)
    wall = rbd_ros.with_gravity(floor, MOUNTING.T @ (0.0, 0.0, -9.81))
    wall = rbd_ros.with_payload(wall, 'tool', TOOL, com=PLACE)
    on_floor, on_wall = (rbd_ros.gravity_torques(model, Q) for model in (floor, wall))
    print('                 on the floor   on the wall, with a tool')
    for name, one, other in zip(floor.velocity_names, on_floor, on_wall):
        print(f'{name:16}{one:9.2f} N m{other:11.2f} N m')
    return on_floor, on_wall


if __name__ == '__main__':
    main()
