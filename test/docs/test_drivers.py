# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The pages describe the presets of robots as the files in config/robots have them."""

from pathlib import Path
import re
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
from rbd_ros.control import EffortConvention
from rbd_ros.control.effort_convention import convention_mismatch
import yaml

ROOT = Path(__file__).parents[2]
PRESETS = {path.stem: yaml.safe_load(path.read_text())['/**']['ros__parameters'][
    'effort_convention'] for path in (ROOT / 'config' / 'robots').glob('*.yaml')}
DRIVERS = (ROOT / 'doc' / 'how_to' / 'drivers.md').read_text(encoding='utf-8')
SECTIONS = dict(re.findall(r'^## (.*?)\n(.*?)(?=^## |\Z)', DRIVERS, re.MULTILINE | re.DOTALL))


def test_the_table_of_conventions_is_that_of_the_files():
    page = (ROOT / 'doc' / 'concepts' / 'effort.md').read_text(encoding='utf-8')
    rows = re.findall(r'^\| `(\w+)` \| (.*?) \| (.*?) \|$', page, re.MULTILINE)
    assert [name for name, _, _ in rows if name in PRESETS] == list(
        dict.fromkeys(name for name, _, _ in rows)) and len(rows) == len(PRESETS)
    for name, states, commands in rows:
        preset = PRESETS[name]
        assert ('without gravity' in states) == (preset['states'] == 'without_gravity'), name
        assert states.startswith('full') == (preset['states'] == 'full'), name
        assert ('without friction' in states) != preset['states_have_friction'], name
        assert commands == preset['commands'].replace('_', ' '), name


def test_the_table_of_drivers_has_every_preset_and_a_section_for_each_driver():
    rows = re.findall(r'^\| (\[.*?) \| (.*?) \| `(.*?)` \| (.*?) \| (.*?) \|$', DRIVERS,
                      re.MULTILINE)
    named = re.findall(r'`(\w+)`', ' '.join(row[1] for row in rows))
    assert sorted(named) == sorted(PRESETS)
    anchors = re.findall(r'\(#(\w+)\)', ' '.join(row[0] for row in rows))
    assert [name.lower() for name in SECTIONS][:len(anchors)] == anchors
    for drivers, presets, states, _, commands in rows:
        for anchor in re.findall(r'\(#(\w+)\)', drivers):
            text = next(text for name, text in SECTIONS.items() if name.lower() == anchor)
            launch = '\n'.join(re.findall(r'^```bash\n(.*?)^```', text, re.MULTILINE | re.DOTALL))
            if anchor == 'gazebo':
                assert 'The launch command is that of MuJoCo' in ' '.join(text.split())
                continue
            for preset in re.findall(r'`(\w+)`', presets):
                assert f'robot:={preset}' in launch.split(), anchor
            given = dict(one.split(':=') for one in launch.split() if ':=' in one)
            found = given.get('joint_states', 'joint_states')
            assert '/'.join(('', *filter(None, (given.get('namespace'), found)))) == states
            topic = re.search(r'^`(/\S+)`', commands)
            assert given.get('commands') == (topic[1] if topic else None), anchor


def test_currents_of_a_ur_cause_a_warning_except_with_the_preset_for_currents():
    # Of a UR5e that is stretched out, with constants of the size that its motors have.
    names, g = list('abcdef'), np.array([0.0, -42.0, -15.0, -1.0, 0.0, 0.0])
    constants = (11.0, 11.0, 11.0, 8.0, 8.0, 8.0)

    def complaint(preset, **given):
        convention = EffortConvention(**PRESETS[preset], **given)
        k = np.array(given.get('state_constants', np.ones(6)))
        return convention_mismatch(convention, names, k * g / constants, g)

    assert 'efforts at rest are not as' in complaint('ur_currents')
    assert not complaint('ur_currents', joints=tuple(names), state_constants=constants)
    assert not complaint('ur')      # as the page warns


class StandIn:
    """A node of ROS that keeps its callbacks and what it publishes."""

    def __init__(self, name, namespace):
        self.callbacks, self.sent, StandIn.last = {}, [], self

    def create_publisher(self, kind, topic, depth):
        return SimpleNamespace(publish=lambda message: self.sent.append((topic, message)))

    def create_subscription(self, kind, topic, callback, depth):
        self.callbacks[topic] = callback


def test_the_relay_sends_torques_with_measured_positions_and_zero_when_they_stop(monkeypatch):
    def module(name, **content):
        made = ModuleType(name)
        made.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, made)

    module('rclpy', init=lambda: None, spin=lambda node: None)
    module('rclpy.node', Node=StandIn)
    module('lbr_fri_idl')
    module('lbr_fri_idl.msg', LBRState=object, LBRTorqueCommand=SimpleNamespace)
    code, = re.findall(r'^```py\n(.*?)^```', SECTIONS['KUKA'], re.MULTILINE | re.DOTALL)
    names = {'__name__': 'relay'}
    exec(code, names)
    node, now = StandIn.last, [100.0]
    monkeypatch.setattr(names['time'], 'monotonic', lambda: now[0])
    state = SimpleNamespace(session_state=4, measured_joint_position=[0.1 * k for k in range(7)])

    def answer():
        node.callbacks['state'](state)
        topic, message = node.sent.pop()
        assert topic == 'command/torque'
        assert message.joint_position == state.measured_joint_position
        return message.torque

    assert answer() == [0.0] * 7                # no torques yet
    torques = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    node.callbacks['torques'](SimpleNamespace(data=torques))
    assert answer() == torques
    now[0] += 0.09
    assert answer() == torques
    now[0] += 0.02
    assert answer() == [0.0] * 7
    state.session_state = 3
    node.callbacks['state'](state)
    assert not node.sent
