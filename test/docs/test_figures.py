# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Times on the pages are those of the benchmark, which measures every public function."""

import inspect
from pathlib import Path
import re
import runpy
from types import ModuleType, SimpleNamespace
import warnings

import numpy as np
import rbd_ros
from rbd_ros import random_configuration

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / 'benchmark/RESULTS.md').read_text(encoding='utf-8')


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
