# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What stands on /diagnostics, for people and for programs that plot it."""

from geometry_msgs.msg import Inertia, Vector3, Vector3Stamped
from harness import check_values, WORDS
import pytest
from rbd_msgs.srv import SetGravity, SetPayload
from rbd_ros.ros.runtime.report import Lasting

pytestmark = pytest.mark.usefixtures('domain')


def test_diagnostics_have_one_number_per_key_after_any_event(harness, state, model):
    node, (names, q, v) = harness(state_timeout=60.0, on_stale='hold'), state
    values = node.diagnosis()[2]
    assert {values[f'age of {name}, s'] for name in names} == {'inf'}
    node.answer(names, q, v)
    assert node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia(m=0.5)).success
    assert node.call(SetGravity, 'set_gravity', gravity=Vector3Stamped(
        vector=Vector3(x=0.5, z=-3.0))).success
    node.send([names[0]] * 2, [0.0] * 2)
    node.describe('<robot name="r"><link/></robot>')
    node.spin_until(lambda: node.node.report.counts['descriptions refused'])
    node.answer(names, q, v)
    values = node.diagnosis()[2]
    assert [float(values[f'gravity {axis}, m/s^2']) for axis in 'xyz'] == [0.5, 0.0, -3.0]
    assert float(values['load on tool0, kg']) == 0.5
    assert float(values['mass, kg']) == pytest.approx(model.mass + 0.5, rel=1e-5)
    assert float(values['joint states']) == 3
    assert float(values['outputs']) == 2
    assert float(values['joint states dropped: duplicate names']) == 1
    assert float(values['descriptions refused']) == 1
    assert 'refused' in values['last error']
    assert set(WORDS) - {'mode', 'reference'} <= set(values)
    assert values['kernels'] == 'ready' and values['command joints'] == ', '.join(names)
    later = node.diagnosis()[2]
    assert float(later['joint states']) == 3
    assert float(later['joint states since the last report']) == 0
    for report in node.heard['/diagnostics']:
        check_values(report)
    assert any('compute time p99, us' in {pair.key for pair in report.status[0].values}
               for report in node.heard['/diagnostics'])


def test_findings_are_reported_after_two_reports_in_a_row():
    lasting = Lasting()
    assert lasting.update({'a': 'first', 'b': 'first'}) == []
    assert lasting.update({'b': 'second', 'c': 'second'}) == ['second']
    assert lasting.update({}) == [] and lasting.update({'b': 'fourth'}) == []
