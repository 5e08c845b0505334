# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robots with closed loops in urdf/, for tests, and the palletizer with mimics instead."""

from pathlib import Path
import warnings

from loops_oracle import LoopOracle
from lxml import etree
import numpy as np
import rbd_ros
from rbd_ros.model.files.constraint_elements import constraints_of
from rbd_ros.model.files.xml_elements import decode, parse

URDF = Path(__file__).parents[2] / 'urdf'
# The motors of each robot, in the order of its velocities.
MOTORS = {'four_bar': ['crank'], 'slider_crank': ['crank'],
          'five_bar': ['left_shoulder', 'right_shoulder'],
          'palletizer': ['yaw', 'shoulder', 'flange', 'crank'],
          'delta': ['motor_1', 'motor_2', 'motor_3']}


def document(name):
    """Return the parsed URDF of a robot."""
    return parse(decode((URDF / f'{name}.urdf').read_bytes()))


def without_constraints(root, strict=False):
    """Return the tree of a document."""
    root = parse(etree.tostring(root, encoding='unicode'))
    for element in list(root.iterchildren('constraint')):
        root.remove(element)
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        return rbd_ros.load_urdf_string(etree.tostring(root, encoding='unicode'), strict=strict)


def loop_robot(name):
    """Return the oracle of a robot in urdf/, with its motors as independent joints."""
    root = document(name)
    return LoopOracle(without_constraints(root), constraints_of(root), MOTORS[name])


def moved_motors(oracle, angles, steps=8):
    """Return the closed configuration at angles of the motors that is reached from zero."""
    q = np.zeros(oracle.tree.nq)
    for k in range(1, steps + 1):
        q[oracle.independent] = np.multiply(k / steps, angles)
        q = oracle.close(q, oracle.independent)
    return q


def palletizer_with_mimics():
    """
    Return the palletizer as a tree in which the passive joints mimic motors.

    Sides of a parallelogram stay parallel. The plate only translates, so that the upper arm turns
    on it as its crank does on the column; the drive rod turns, on a carrier at the end of the
    crank that only translates, as the lower arm does.

    """
    root = document('palletizer')
    joints = {joint.get('name'): joint for joint in root.iterchildren('joint')}
    for name, leader, multiplier in (
            ('plate', 'shoulder', -1), ('elbow', 'crank', 1), ('wrist', 'crank', -1),
            ('lower_leveling_rod', 'shoulder', 1), ('upper_leveling_rod', 'crank', 1),
            ('drive_rod', 'shoulder', 1)):
        mimic = joints[name].makeelement('mimic', joint=leader, multiplier=str(multiplier))
        joints[name].append(mimic)
    joints['elbow'].find('parent').set('link', 'plate_link')
    joints['elbow'].remove(joints['elbow'].find('origin'))      # both are at the elbow
    root.append(root.makeelement('link', name='carrier'))
    carrier = root.makeelement('joint', name='carrier', type='continuous')
    for tag, attributes in (('parent', {'link': 'crank_link'}), ('child', {'link': 'carrier'}),
                            ('origin', dict(joints['drive_rod'].find('origin').attrib)),
                            ('axis', {'xyz': '0 1 0'}),
                            ('mimic', {'joint': 'crank', 'multiplier': '-1'})):
        carrier.append(carrier.makeelement(tag, attributes))
    root.append(carrier)
    joints['drive_rod'].find('parent').set('link', 'carrier')
    joints['drive_rod'].remove(joints['drive_rod'].find('origin'))
    return without_constraints(root)
