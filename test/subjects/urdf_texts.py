# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Texts of URDFs for the tests: their elements, small robots, and variants of these."""

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


LIGHT = ('<inertial><origin xyz="0 0 0.1"/><mass value="1"/>'
         '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>')


def link(name, inertial=LIGHT):
    """Return the XML of a link."""
    return f'<link name="{name}">{inertial}</link>'


def joint(name, parent, child, kind='revolute', inside='<axis xyz="0 0 1"/>'):
    """Return the XML of a joint."""
    limit = '<limit effort="9" velocity="2" lower="-1" upper="1"/>' if kind != 'continuous' else ''
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/>{limit}{inside}</joint>')


def robot(*elements):
    """Return the text of a URDF."""
    return '<robot name="r">' + ''.join(elements) + '</robot>'


def mimic(name, multiplier='1', offset='0'):
    """Return the inside of a joint that copies another."""
    return (f'<axis xyz="0 0 1"/><mimic joint="{name}" multiplier="{multiplier}" '
            f'offset="{offset}"/>')


def two_joint_arm(upper='<mass value="1.2"/><inertia ixx="0.01" iyy="0.01" izz="0.002" ixy="0" '
                  'ixz="0" iyz="0"/>', limit='effort="20" velocity="3" lower="-2" upper="2"',
                  shoulder='type="revolute"', inside='', more='', version=''):
    """Return a plausible arm, with parts of its first link and joint, or other elements."""
    inertial = f'<inertial><origin xyz="0 0 0.1"/>{upper}</inertial>' if upper else ''
    return f"""<robot name="arm"{version}><link name="base"/><link name="upper">{inertial}</link>
<link name="lower"><inertial><origin xyz="0 0 0.1"/><mass value="0.6"/><inertia ixx="0.004"
iyy="0.004" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder" {shoulder}><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
<limit {limit}/>{inside}</joint>
<joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
<origin xyz="0 0 0.3"/><axis xyz="0 1 0"/><limit effort="9" velocity="3" lower="-2" upper="2"/>
</joint>{more}</robot>"""


_MASS, _INERTIA = '<mass value="1.2"/>', ('<inertia ixx="0.01" iyy="0.01" izz="0.002" ixy="0" '
                                          'ixz="0" iyz="0"/>')
_ONE = '<link name="more">{}</link><joint name="j" {}><parent link="lower"/><child link="more"/>{}'
_LIMIT = '<limit effort="9" velocity="3" lower="-2" upper="2"/>'
_SMALL = ('<inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" '
          'iyz="0"/></inertial>')


def _with_joint(attributes, inside, inertial=_SMALL):
    """Return the arm with a third joint."""
    return two_joint_arm(more=_ONE.format(inertial, attributes, inside) + '</joint>')


# Robots that readers take with warnings: the text, and how each of its warnings begins.
DOUBTFUL = {
    'effort 0': (two_joint_arm(limit='effort="0" velocity="3" lower="-2" upper="2"'), [
        'joint shoulder: effort limit 0: taken as not stated; where a node needs it, set '
        'command_limits']),
    'velocity 0': (two_joint_arm(limit='effort="20" velocity="0" lower="-2" upper="2"'), [
        'joint shoulder: velocity limit 0: taken as not stated']),
    'two inertias': (two_joint_arm(_MASS + _INERTIA + _INERTIA.replace('0.0', '0.1')), [
        "link 'upper': it has several <inertia> elements; the first is used"]),
    'two masses': (two_joint_arm(_MASS + '<mass value="7"/>' + _INERTIA), [
        "link 'upper': it has several <mass> elements; the first is used"]),
    'two axes': (two_joint_arm(inside='<axis xyz="1 0 0"/>'), [
        "joint 'shoulder': it has several <axis> elements; the first is used"]),
    'two limits': (two_joint_arm(inside='<limit effort="1" velocity="1"/>'), [
        "joint 'shoulder': it has several <limit> elements; the first is used"]),
    'two parents': (two_joint_arm(inside='<parent link="lower"/>'), [
        "joint 'shoulder': it has several <parent> elements; the first is used"]),
    'mass without inertia': (two_joint_arm(_MASS + _INERTIA.replace('0.01', '0').replace(
        '0.002', '0')), ['link upper: a mass without rotational inertia: turning it about its '
                         'own centre costs no torque; add its <inertia>']),
    'mass without an element': (two_joint_arm(_MASS), [
        'link upper: a mass without rotational inertia']),
    'a fixed mass without inertia': (two_joint_arm(more=_ONE.format(
        '<inertial><mass value="0.1"/></inertial>', 'type="fixed"', '</joint>')), [
            'link more: a mass without rotational inertia']),
    'no mass between masses': (two_joint_arm(''), [
        'these links move but have no mass (is their inertial missing?): upper']),
    'no moving joint': (
        '<robot name="table"><link name="base"/><link name="plate"><inertial><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="bolt" type="fixed"><parent link="base"/><child link="plate"/></joint>'
        '</robot>', ['the robot has no moving joint: there is nothing to compute']),
    'no inertials': (
        '<robot name="picture"><link name="base"/><link name="upper"/><joint name="shoulder" '
        'type="revolute"><parent link="base"/><child link="upper"/>'
        f'<axis xyz="0 1 0"/>{_LIMIT}</joint></robot>', [
            'these links move but have no mass (is their inertial missing?): upper',
            'no link has a mass: every torque is zero; add the <inertial> elements']),
    'a joint moves no mass': (_with_joint('type="revolute"', _LIMIT, ''), [
        'these links move but have no mass (is their inertial missing?): more',
        'joint j: moves no mass: its torque is zero unless others drive it; add <inertial>']),
    'reversed limits': (two_joint_arm(limit='effort="20" velocity="3" lower="2" upper="-2"'), [
        "joint 'shoulder': its lower limit (2.0,) lies above its upper limit (-2.0,); both "
        'ignored']),
    'negative limits': (two_joint_arm(limit='effort="-20" velocity="-3" lower="-2" upper="2"'), [
        "joint 'shoulder': its velocity and effort limits are negative, -3 and -20; they are "
        'ignored']),
    'no limit': (_with_joint('type="revolute"', ''), [
        "joint 'j': it has no <limit>; no limits are assumed"]),
    'no effort': (two_joint_arm(limit='velocity="3" lower="-2" upper="2"'), [
        "joint 'shoulder': its <limit> has no effort; no limit is assumed"]),
    'no upper limit': (two_joint_arm(limit='effort="20" velocity="3" lower="-2"',
                                     version=' version="1.2"'), [
        "joint 'shoulder': its <limit> has no upper; no limit is assumed"]),
    'degrees': (two_joint_arm(limit='effort="20" velocity="3" lower="-90" upper="90"'), [
        'joint shoulder: limits of more than two turns; are these degrees? URDF uses rad']),
    'degrees of an origin': (_with_joint('type="revolute"', _LIMIT + '<origin rpy="0 90 0"/>'), [
        "joint 'j': rpy=\"0 90 0\" is more than a full turn; are these degrees? URDF uses rad"]),
    'grams': (two_joint_arm('<mass value="2500"/><inertia ixx="300" iyy="300" izz="200" ixy="0" '
                            'ixz="0" iyz="0"/>'), [
        'link upper: more than 2000 kg; is the unit kg?']),
    'impossible inertia': (two_joint_arm(_MASS + _INERTIA.replace('0.002', '0.03')), [
        "link 'upper': its principal moments 0.01, 0.01, 0.03 kg m^2 break the triangle"]),
    'mimic of nothing': (_with_joint('type="revolute"', _LIMIT + '<mimic joint="gone"/>'), [
        "joint 'j' mimics 'gone', which is not there: it moves on its own; add that joint, or "
        'remove the mimic']),
    'mimic of a fixed joint': (two_joint_arm(more=(
        '<link name="plate"/><joint name="bolt" type="fixed"><parent link="lower"/>'
        '<child link="plate"/></joint>' + _ONE.format(_SMALL, 'type="revolute"', _LIMIT)
        + '<mimic joint="bolt" offset="0.5"/></joint>')), [
        "joint 'j' mimics 'bolt', which is fixed; it is fixed too, at its offset, 0.5"]),
    'unknown element': (two_joint_arm(more='<bogus/>'), [
        "robot 'arm': <bogus> in <robot> is not used: it is not known"]),
    'new limits of an old version': (two_joint_arm(
        limit='effort="20" velocity="3" lower="-2" upper="2" jerk="9"'), [
        'the robot has limits of acceleration, deceleration or jerk, which other programs '
        'ignore before <robot version="1.2">']),
    'no links': ('<robot name="nothing"/>', [
        'the robot has no links: there is nothing to compute',
        'the robot has no moving joint: there is nothing to compute']),
}
