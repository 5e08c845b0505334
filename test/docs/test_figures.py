# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Figures on the pages have a source: the benchmark, a test, or a constant."""

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
from rbd_ros.ros.demo import gravity, session
from rbd_ros.ros.demo.torque_modes import (
    AdaptiveMode, ComputedTorqueMode, HybridMode, ImpedanceMode)
from rbd_ros.ros.nodes import simulated_robot
from rbd_ros.ros.outputs import commanding
from rbd_ros.ros.runtime import report, worker
from rbd_ros.ros.services import dynamics_services

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / 'benchmark/RESULTS.md').read_text(encoding='utf-8')
PINOCCHIO = runpy.run_path(str(ROOT / 'test/dynamics/test_pinocchio.py'))
SOAK = runpy.run_path(str(ROOT / 'test/soak.py'))
DEMO, NODE, COMMANDS, COMPARISON = (
    'how_to/demo.md', 'interfaces.md', 'how_to/feed_a_controller.md', 'comparison.md')
# A sentence of a page, with a group for each figure, and where the figures come from.
CLAIMS = [
    (DEMO, 'no joint moves by (.+?) rad in (ten) seconds',
     (gravity.MAX_DRIFT, gravity.COMPENSATED)),
    (DEMO, r'error of each joint is less than (\S+) rad, .*? at least (five) times as large',
     (ComputedTorqueMode.tolerance, ComputedTorqueMode.MIN_IMPROVEMENT)),
    (DEMO, r'do so with less than (\S+) rad RMS', (HybridMode.tolerance,)),
    (DEMO, r'measure the commanded stiffness within (\S+) %', (
        100.0 * ImpedanceMode.MAX_DEVIATION,)),
    (DEMO, 'after (ten) seconds of adaptation the error is at least (five) times smaller',
     (AdaptiveMode.WITH - AdaptiveMode.COMPARED - AdaptiveMode.FADES,
      AdaptiveMode.MIN_IMPROVEMENT)),
    (DEMO, r'disturbed by a pause of (\d+) ms is repeated, up to (five) times',
     (1e3 * session.MAX_PAUSE, session.ATTEMPTS)),
    (DEMO, r'`tolerated_delay` \((\d+) ms\)',
     (1e3 * simulated_robot._PARAMETERS['tolerated_delay'].default,)),
    (NODE, r'subscriber is noticed within (\S+) s', (commanding.LISTENERS_PERIOD,)),
    (NODE, r"more than (\S+) times the robot's mass, or more than (\S+) m from",
     (dynamics_services.MAX_MASS_RATIO, dynamics_services.MAX_COM_DISTANCE)),
    (NODE, 'While (eight) are waiting', (worker.MAX_WAITING,)),
    (COMMANDS, r'commands without states, (\d+) a second',
     (1.0 / commanding.COMMAND_PERIOD,)),
    (COMMANDS, r'`blend_time`, at least (\S+) s', (effort_commands.MIN_BLEND,)),
    (COMMANDS, 'more than a (fifth) of the distance',
     (effort_commands.MIN_BLEND / effort_commands.MAX_BLEND_STEP,)),
    (COMMANDS, 'appears after (a second) without any', (effort_commands.SUBSCRIBER_TIMEOUT,)),
    (COMPARISON, r'to (\S+) of the largest entry on (\S+) robots',
     (PINOCCHIO['ROUNDING'], len(PINOCCHIO['ROBOTS']))),
    (COMPARISON, r'C v to (\S+), forward dynamics to (\S+), which',
     (PINOCCHIO['CORIOLIS'], PINOCCHIO['INVERSION'])),
    (COMPARISON, r'sends ([\d,]+) states at (1 kHz)', (SOAK['RATE'] * SOAK['LONG'], SOAK['RATE'])),
    (COMPARISON, r'memory grows by more than (\S+) MB', (SOAK['GROWTH'] / 2 ** 20,)),
]
WORDS = {'five': 5, 'ten': 10, 'eight': 8, 'fifth': 5, 'a second': 1, '1 kHz': 1000}


@pytest.mark.parametrize('page, sentence, figures', CLAIMS, ids=[one for _, one, _ in CLAIMS])
def test_figures_of_the_pages_are_those_of_the_code_and_the_tests(page, sentence, figures):
    found = re.search(sentence, ' '.join((ROOT / 'doc' / page).read_text('utf-8').split()))
    assert found, f'{page} says this in other words now: {sentence}'
    assert [float(WORDS.get(one, one.replace(',', ''))) for one in found.groups()
            ] == pytest.approx(figures)


def test_times_in_the_readme_are_those_of_the_benchmark():
    readme = (ROOT / 'README.md').read_text(encoding='utf-8')
    block = readme.partition('from here -->\n')[2].partition('<!-- to here')[0].strip()
    assert 'in one call' in block and 'regressor' in block
    assert set(block.splitlines()) <= set(RESULTS.splitlines())
    version, = re.findall(r'^\| pin \| ([\d.]+) \|', RESULTS, re.MULTILINE)
    assert version.startswith(re.search(r'Pinocchio ([\d.]+), both', readme)[1])


def test_the_page_of_comparisons_includes_the_figures_of_the_benchmark():
    page = (ROOT / 'doc/comparison.md').read_text(encoding='utf-8')
    file, start, end = re.search(r'^```\{include\} (\S+)\n:start-after: "(.*)"\n'
                                 r':end-before: "(.*)"$', page, re.MULTILINE).groups()
    included = (ROOT / 'doc' / file).read_text(encoding='utf-8').partition(start)[2]
    included = included.partition(end)[0]
    assert included in RESULTS
    assert 'in one call' in included and 'the node at 1 kHz' in included


# -- Every public function is timed. -------------------------------------------------------------

def public_functions():
    """Return the public functions of rbd_ros, its modules and packages, by name."""
    found = {}
    for name in rbd_ros.__all__:
        thing = getattr(rbd_ros, name)
        if not isinstance(thing, ModuleType):
            found[name] = thing
        elif name != 'textbook':
            for part in getattr(thing, '__all__', vars(thing)):
                one = getattr(thing, part)
                if inspect.isfunction(one) and one.__module__.startswith('rbd_ros.'):
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
        # Functions with two names are timed once.
        timed = [call.run.func for call in calls.values()]
        assert [name for name, one in functions.items() if one not in timed] == []


def test_diagnostics_come_as_often_as_the_page_says():
    assert '| state of the node, 1 Hz' in (ROOT / 'doc/interfaces.md').read_text()
    assert 'create_timer(1.0, self._publish' in inspect.getsource(report.Health)
