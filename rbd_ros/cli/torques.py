# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros torques``: the torques of one state, by joint."""

from __future__ import annotations

import argparse

from rbd_ros.cli.options import add_list, add_robot, load_robot, number_of_joint, state_vector
from rbd_ros.dynamics import friction_torques, inverse_dynamics


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, floating_base=True, lock=True)
    for name, what in (('--q', 'positions, rad or m'), ('--v', 'velocities, per s'),
                       ('--a', 'accelerations, per s^2')):
        add_list(parser, name, type=number_of_joint, metavar='[JOINT=]NUMBER',
                 help=f'{what}: all, in the order of `rbd_ros check`, or some by name; the others '
                      'are 0')
    parser.add_argument('--friction', action='store_true',
                        help='add the torques of damping and friction')


def run(options: argparse.Namespace) -> int:
    """Print M a + C v + g."""
    model = load_robot(options)
    q = state_vector(model, '--q', options.q, positions=True)
    v = state_vector(model, '--v', options.v)
    tau = inverse_dynamics(model, q, v, state_vector(model, '--a', options.a))
    if options.friction:
        tau += friction_torques(model, v)
    for name, x, angular in zip(model.velocity_names, tau, model.angular):
        print(f'{name:32s} {x:16.9g} {"N m" if angular else "N"}')
    return 0
