# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Figures that the README states have a source: the benchmark, a test, or a constant."""

import inspect
from pathlib import Path
import re
import runpy
from types import ModuleType, SimpleNamespace
import warnings

import numpy as np
import pytest
import rbd_ros
from rbd_ros import random_configuration
from rbd_ros.ros.commands import effort_commands
from rbd_ros.ros.demo import adaptive, computed_torque, gravity, hybrid, impedance, stage
from rbd_ros.ros.nodes import simulated_robot
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.outputs import diagnostics
from rbd_ros.ros.outputs import publishing
from rbd_ros.ros.runtime import worker
from rbd_ros.ros.services import services

ROOT = Path(__file__).parents[2]
README = (ROOT / 'README.md').read_text(encoding='utf-8')
RESULTS = (ROOT / 'benchmark/RESULTS.md').read_text(encoding='utf-8')
PINOCCHIO = runpy.run_path(str(ROOT / 'test/dynamics/test_pinocchio.py'))
SOAK = runpy.run_path(str(ROOT / 'test/soak.py'))
# How a sentence puts it, with a group for each figure, and where the figures come from.
CLAIMS = [
    ('no joint moves by (.+?) rad in (ten) seconds', (gravity.HELD, gravity.COMPENSATED)),
    (r'error of each joint is less than (\S+) rad, .* at least (five) times as much',
     (computed_torque.FOLLOWED, computed_torque.TIMES)),
    (r'do so with less than (\S+) rad RMS', (hybrid.FOLLOWED,)),
    (r'that was commanded within (\S+) %', (100.0 * impedance.FOUND,)),
    ('after (ten) seconds of learning the error is at least (five) times less',
     (adaptive.WITH - adaptive.COMPARED - adaptive.FADES, adaptive.TIMES)),
    (r'disturbed by a pause of (\d+) ms is repeated, up to (five) times',
     (1e3 * stage.GAP, stage.TRIES)),
    (r'`tolerated_delay` \((\d+) ms\)',
     (1e3 * simulated_robot._PARAMETERS['tolerated_delay'][0],)),
    (r'subscriber is noticed within (\S+) s', (publishing.LISTENERS_PERIOD,)),
    (r"more than (\S+) times the robot's mass, or more than (\S+) m from",
     (services.HEAVIEST, services.FARTHEST)),
    ('if (eight) are waiting', (worker.MOST_WAITING,)),
    (r'commands without states, (\d+) a second', (1.0 / publishing.COMMAND_PERIOD,)),
    (r'`blend_time`, at least (\S+) s', (effort_commands.MIN_BLEND,)),
    ('more than a (fifth) of the distance',
     (effort_commands.MIN_BLEND / effort_commands.MAX_BLEND_STEP,)),
    ('appears after (a second) without any', (effort_commands.SUBSCRIBER_TIMEOUT,)),
    (r'to (\S+) of the largest entry on (\S+) robots',
     (PINOCCHIO['ROUNDING'], len(PINOCCHIO['ROBOTS']))),
    (r'C v to (\S+), forward dynamics to (\S+), which',
     (PINOCCHIO['CORIOLIS'], PINOCCHIO['INVERSION'])),
    (r'sends ([\d,]+) states at (1 kHz)', (SOAK['RATE'] * SOAK['LONG'], SOAK['RATE'])),
    (r'memory grows by more than (\S+) MB', (SOAK['GROWTH'] / 2 ** 20,)),
]
WORDS = {'five': 5, 'ten': 10, 'eight': 8, 'fifth': 5, 'a second': 1, '1 kHz': 1000}


@pytest.mark.parametrize('sentence, figures', CLAIMS, ids=[one for one, _ in CLAIMS])
def test_figures_of_the_readme_are_those_of_the_code_and_the_tests(sentence, figures):
    found = re.search(sentence, ' '.join(README.split()))
    assert found, f'the README says this in other words now: {sentence}'
    assert [float(WORDS.get(one, one.replace(',', ''))) for one in found.groups()
            ] == pytest.approx(figures)


def test_defaults_in_the_readme_are_those_of_the_node():
    table = README.partition('| parameter |')[2].partition('\n\n')[0]
    rows = re.findall(r'^\| (`[^|]*) \| ([^|]*) \|', table, re.MULTILINE)
    assert len(rows) > 20
    checked = 0
    for names, default in rows:
        first = DynamicsNode.settings[re.search(r'`([\w.]+)`', names)[1]].default
        if isinstance(first, bool) or not re.match(r'[\d.\[]', default):
            continue
        assert [float(x) for x in re.findall(r'-?[\d.]+', default.partition(';')[0])] == list(
            np.ravel(first))
        checked += 1
    assert checked > 8


def test_times_in_the_readme_are_those_of_the_benchmark():
    block = README.partition('from here -->\n')[2].partition('<!-- to here')[0].strip()
    assert 'in one call' in block and 'the node at 1 kHz' in block
    assert block in RESULTS
    version, = re.findall(r'^\| pin \| ([\d.]+) \|', RESULTS, re.MULTILINE)
    assert version.startswith(re.search(r'Pinocchio ([\d.]+), both', README)[1])


# -- Every public function has its time. ---------------------------------------------------------

def public_functions():
    """Return the functions of the top, of its modules and of its packages, by their names."""
    found = {}
    for name in rbd_ros.__all__:
        thing = getattr(rbd_ros, name)
        if not isinstance(thing, ModuleType):
            found[name] = thing
        elif name != 'textbook':
            for part in getattr(thing, '__all__', vars(thing)):
                one = getattr(thing, part)
                if inspect.isfunction(one) and one.__module__.startswith(thing.__name__):
                    found[f'{name}.{part}'] = one
    return {name: one for name, one in found.items()
            if inspect.isfunction(one) and not name.rpartition('.')[2].startswith('_')}


def test_every_public_function_is_timed_and_what_is_timed_runs(tmp_path):
    functions = public_functions()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        path = ROOT / 'urdf/demo_arm.urdf'
        model = rbd_ros.load_urdf(path)
        rng = np.random.default_rng(0)
        q, (v, a) = random_configuration(model, rng), rng.normal(size=(2, model.nv))
        robot = SimpleNamespace(model=model, path=path, q=q, v=v, a=a,
                                tau=rbd_ros.inverse_dynamics(model, q, v, a),
                                tip=model.link_names[-1])
        calls = runpy.run_path(str(ROOT / 'benchmark/functions.py'))['calls'](robot, tmp_path)
        for name, call in calls.items():
            assert call.run.func is functions[name], name
            call.run()
        # What the top has as well as a package is timed once.
        timed = [call.run.func for call in calls.values()]
        assert [name for name, one in functions.items() if one not in timed] == []


def test_diagnostics_come_as_often_as_the_readme_says():
    assert '| what the node is doing, 1 Hz' in README
    assert 'create_timer(1.0, self._publish' in inspect.getsource(diagnostics)
