# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The layout for Foxglove: each panel has its place, each path a topic, fields and numbers."""

from importlib import import_module
import json
from pathlib import Path
import re
import warnings

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from harness import TOPICS
import pytest
from rbd_ros import load_urdf
from rbd_ros.ros.messages.markers import NAMESPACES
from rbd_ros.ros.runtime.foxglove_layout import layout, main
from rbd_ros.ros.runtime.report import Report
from robots import example_urdf, load_quietly
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

ROOT = Path(__file__).parents[3]
LAYOUT = json.loads((ROOT / 'config' / 'foxglove_layout.json').read_text())
PANELS = LAYOUT['configById']
# Topics as the node `/dynamics`, and what stands beside it, publish them.
KNOWN = {'/joint_states': JointState, '/robot_description': String,
         '/diagnostics': DiagnosticArray, '/dynamics/markers': MarkerArray,
         **{topic.replace('~', '/dynamics'): kind for topic, kind in TOPICS.items()}}
NUMBERS = {'double', 'float', 'boolean', 'int8', 'octet', 'uint32'}


def panels(place):
    """Return the panels in a part of the layout."""
    if isinstance(place, str):
        return [place]
    assert place['direction'] in ('row', 'column')
    assert 0 < place['splitPercentage'] < 100
    return panels(place['first']) + panels(place['second'])


def paths():
    """Return the message paths of all panels."""
    return [one['value'] for panel in PANELS.values() for one in panel.get('paths', [])]


def field(kind, name):
    """Return the type of a field of a message, and whether it is an array."""
    text = kind.get_fields_and_field_types()[name]
    single = re.sub(r'sequence<(.*)>|\[.*\]$', lambda found: found[1] or '', text)
    if '/' not in single:
        return single, single != text
    package, message = single.split('/')
    return getattr(import_module(f'{package}.msg'), message), single != text


def leads_to(path):
    """Return the type that a message path ends at; every array in it must be indexed."""
    topic, rest = re.fullmatch(r'(/[a-z_/]+)(.*)', path).groups()
    kind = KNOWN[topic]
    parts = re.findall(r'\.(\w+)(\[[\d:]+\])?((?:\{\w+=="[^"]*"\})*)', rest)
    assert ''.join('.' + ''.join(part) for part in parts) == rest
    for name, index, filters in parts:
        kind, is_array = field(kind, name)
        assert bool(index) == is_array, path
        for condition in re.findall(r'\{(\w+)==', filters):
            assert field(kind, condition) == ('string', False)
    return kind


def test_every_panel_has_one_place():
    assert sorted(panels(LAYOUT['layout'])) == sorted(PANELS)
    # What Foxglove calls them.
    assert {name.partition('!')[0] for name in PANELS} == {
        '3D', 'Plot', 'StateTransitions', 'DiagnosticSummary', 'DiagnosticStatusPanel'}
    assert set(LAYOUT) == {'configById', 'globalVariables', 'userNodes', 'playbackConfig',
                           'layout'}


def test_every_path_leads_to_a_number_at_the_time_of_its_states():
    for path in paths():
        kind = leads_to(path)
        # Values of diagnostics are texts, which Foxglove reads as numbers.
        assert kind in NUMBERS or (path.startswith('/diagnostics') and kind == 'string'), path
        message = KNOWN[re.match('[a-z_/]+', path)[0]]
        assert 'header' in message.get_fields_and_field_types()


def joints_of(content):
    """Return labels of the plotted numbers that joints have, by topic, and their places."""
    found = {}
    for panel in content['configById'].values():
        for one in panel.get('paths', []):
            topic, index = re.fullmatch(r'(/[a-z_/]+).*?(?:\[(\d+)\])?', one['value']).groups()
            if index is not None and not topic.startswith('/diagnostics'):
                found.setdefault(topic, []).append((int(index), one['label']))
    return found


def test_numbers_of_joints_have_their_names_and_measured_ones_their_places():
    arm = load_urdf(ROOT / 'urdf' / 'demo_arm.urdf').velocity_names
    ours = list(enumerate(arm))
    assert joints_of(LAYOUT) == {
        '/dynamics/gravity_torques': ours, '/dynamics/coriolis_torques': ours,
        '/dynamics/external_torques': ours,
        '/joint_states': [(k, f'[{k}]') for k in range(len(arm))]}
    # The file is what the program prints for the demo arm.
    assert json.loads(layout(arm)) == LAYOUT


@pytest.mark.parametrize('name', ['ur10_robot.urdf', 'talos_reduced.urdf'])
def test_the_layout_for_another_robot_and_node_has_its_joints(name, capsys, monkeypatch):
    path = example_urdf(name)
    names = load_quietly(path).velocity_names
    monkeypatch.setattr('sys.argv', ['foxglove_layout', str(path), 'arm/torque_controller'])
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        main()
    content = json.loads(capsys.readouterr().out)
    found = joints_of(content)
    assert found.pop('/joint_states') == [(k, f'[{k}]') for k in range(len(names))]
    assert found == {f'/arm/torque_controller/{one}_torques': list(enumerate(names))
                     for one in ('gravity', 'coriolis', 'external')}
    assert '/dynamics' not in json.dumps(content)


@pytest.mark.parametrize('words, message', [
    ([], 'usage: foxglove_layout ROBOT'), (['--help'], 'usage: foxglove_layout ROBOT'),
    (['nowhere.urdf'], 'foxglove_layout: nowhere.urdf cannot be read')])
def test_wrong_arguments_are_answered_in_one_line(words, message, monkeypatch):
    monkeypatch.setattr('sys.argv', ['foxglove_layout', *words])
    with pytest.raises(SystemExit, match=message):
        main()


def test_no_panel_listens_to_commands():
    # The node would take it for a controller.
    assert 'effort_commands' not in json.dumps(LAYOUT)


def test_diagnostics_have_the_values_that_are_plotted():
    report = Report()
    report.compute_times.append(1e-5)
    status, = report.message('/dynamics', Time(), [(DiagnosticStatus.OK, 'publishing')],
                             {}).status
    plotted = [re.findall('"([^"]*)"', path) for path in paths()
               if path.startswith('/diagnostics')]
    assert plotted
    for name, key in plotted:
        assert name == status.name
        assert key in {pair.key for pair in status.values}
    heard = {panel['topicToRender'] for name, panel in PANELS.items()
             if name.startswith('Diagnostic')}
    assert {KNOWN[topic] for topic in heard} == {DiagnosticArray}


def test_the_layout_of_foxglove_shows_robot_and_markers_in_the_frame_of_their_root():
    panel, = (panel for name, panel in PANELS.items() if name.startswith('3D!'))
    assert set(panel['topics']) <= set(KNOWN)
    assert panel['topics']['/robot_description']['visible']
    assert list(panel['topics']['/dynamics/markers']['namespaces']) == list(NAMESPACES)
    # No frame is named: Foxglove takes the root of the tree.
    assert 'followTf' not in panel
    assert not any('frameId' in layer for layer in panel['layers'].values())
