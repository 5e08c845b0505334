# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A URDF of one joint for the tests, and variants of its text."""

INERTIAL = ('<inertial><mass value="1"/>'
            '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>')
# A unit mass 1 m from a joint about y: g = 9.81 N m if the rotation is read.
ARM = """<robot name="r" version="1.2"><link name="a"/><link name="b">{inertial}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="9" velocity="2"/></joint></robot>""".format(
    inertial=INERTIAL.replace('<mass', '<origin xyz="1 0 0"/><mass'))


def changed(*pairs):
    """Return ARM with texts replaced, each of which it contains."""
    text = ARM
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text
