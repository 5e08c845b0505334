# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers on the pages are those of the library and of the benchmark, of every public function."""

from dataclasses import replace
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
from rbd_ros.analysis import BODY_REGIONS, retime

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / 'benchmark/RESULTS.md').read_text(encoding='utf-8')
RETIME, CONTACT = ((ROOT / f'doc/how_to/{name}.md').read_text(encoding='utf-8')
                   for name in ('retime', 'contact_speed'))
ROWS = re.findall(r'^\| ([\d.]+) rad/s² \|(.*)\|$', RETIME, re.MULTILINE)
WAYPOINTS = [[0.9, 1.1, 0.0, 0.9, 0.0, 1.1, 0.0], [0.0, 0.5, 0.4, 1.2, 0.0, 1.4, 0.5],
             [-0.9, 1.1, 0.0, 0.9, 0.0, 1.1, 1.0]]


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


@pytest.mark.parametrize('limit, cells', ROWS)
def test_durations_and_efforts_are_those_on_the_page(limit, cells):
    assert len(ROWS) == 4
    arm = rbd_ros.with_payload(rbd_ros.load_urdf('urdf/demo_arm.urdf'), 'tool', 10.0)
    most = np.full(arm.nv, float(limit))
    free = replace(arm, effort_limit=np.full(arm.nv, np.inf))
    for robot, share, cell in zip((free, arm, arm), (1.0, 1.0, 0.9), cells.split('|')):
        found = retime(robot, WAYPOINTS, acceleration_limit=most, effort_share=share)
        time, used = re.findall(r'([\d.]+) s, \**(\d+) %', cell)[0]
        assert found.time[-1] == pytest.approx(float(time), abs=0.006)
        assert 100.0 * np.max(np.abs(found.effort) / arm.effort_limit) == pytest.approx(
            float(used), abs=0.6)


def test_the_table_of_body_regions_is_that_of_the_library():
    rows = [f'| {name} | {one.clamped_force:g} | {one.free_force:g} | {one.stiffness / 1e3:g} | '
            f'{one.mass:g} |' for name, one in BODY_REGIONS.items()]
    assert '\n'.join(rows) in CONTACT


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


def test_every_public_function_has_a_benchmark_that_runs(tmp_path):
    functions = public_functions()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        path = ROOT / 'urdf/demo_arm.urdf'
        # Six joints, as few as tasks of a link need.
        model = rbd_ros.with_locked_joints(rbd_ros.load_urdf(path), {'upper_arm_roll': 0.0})
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
