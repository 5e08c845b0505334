# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The library's border: what it takes, what it refuses, what it depends on."""

import ast
from concurrent.futures import ThreadPoolExecutor
import copy
import gc
import importlib
import itertools
import pathlib
import pickle
import re
import subprocess
import sys
import weakref

import numpy as np
import pytest
import rbd_ros
from rbd_ros import StateError, Workspace
from rbd_ros.kernels.tree.layout import COLUMNS, SCRATCH
from rbd_ros.model.joints import KINDS
from rbd_ros.workspace import workspace_of
from robots import example_urdf, load_quietly, random_state, random_tree

PACKAGE = pathlib.Path(rbd_ros.__file__).parent


@pytest.fixture(scope='module')
def model():
    """Return a Panda, whose fingers mimic each other."""
    return load_quietly(example_urdf('panda.urdf'))


@pytest.fixture(scope='module')
def floating():
    """Return a random tree of all kinds of joints that flies."""
    return rbd_ros.with_floating_base(random_tree(4, 6, kinds=list(KINDS)))


@pytest.fixture(scope='module')
def tree():
    """Return a random tree."""
    return random_tree(3, 9)


def test_library_imports_no_ros():
    ros = re.compile(r'^ *(?:import|from) +(rclpy|launch|ament_index_python|rcl_interfaces|'
                     r'lifecycle_msgs|\w+_msgs|rbd_ros\.ros)\b', re.MULTILINE)
    for source in PACKAGE.rglob('*.py'):
        if 'ros' not in source.relative_to(PACKAGE).parts:
            assert not ros.search(source.read_text()), source
    probe = ('import sys, rbd_ros; '
             'bad = [m for m in sys.modules if m.split(".")[0] in ("rclpy", "rbd_msgs")]; '
             'assert not bad, bad')
    subprocess.run([sys.executable, '-c', probe], check=True)


@pytest.mark.parametrize('name', ['model', 'tree', 'floating'])
def test_position_velocity_and_acceleration_may_be_one_array(request, tree, name):
    model = request.getfixturevalue(name)
    # From now on the kernel is ready, also for robots that must not use it.
    Workspace(tree).inverse_dynamics_packed(np.concatenate(random_state(tree, 1)))
    q, v, a = random_state(model, 1)
    # By the matrices, which another recursion computes; the same sums in another order.
    terms = rbd_ros.all_terms(model, q, v)
    expected = terms.M @ a + terms.coriolis_torques + terms.g
    motion, workspace = np.concatenate((q, v, a)), Workspace(model)
    for given in (motion, motion.tolist(), np.repeat(motion, 2)[::2]):
        np.testing.assert_allclose(workspace.inverse_dynamics_packed(given), expected,
                                   rtol=0.0, atol=1e-10 * abs(expected).max())
    # The last but two would fit a tree in which one joint more moves, as that of the Panda.
    for bad in (motion[:-1], motion[:model.nq], np.append(motion, 0.0),
                np.append(motion, np.zeros(3)), motion[None], []):
        with pytest.raises(StateError, match=f'motion has the shape .*needs .{len(motion)},.: q, '
                                             'v and a'):
            workspace.inverse_dynamics_packed(bad)
    with pytest.raises(StateError, match='motion must be real numbers'):
        workspace.inverse_dynamics_packed(['x'] * len(motion))
    for k, which in ((0, 'q'), (model.nq, 'v'), (model.nq + model.nv, 'a')):
        worse = motion.copy()
        worse[k] = np.nan
        names = model.position_names if which == 'q' else model.velocity_names
        with pytest.raises(StateError, match=f"{which} of '{names[0]}' is nan"):
            workspace.inverse_dynamics_packed(worse)


@pytest.mark.parametrize('floating', [False, True])
def test_no_entry_that_is_not_finite_passes(floating):
    model = random_tree(5, 8)
    model = rbd_ros.with_floating_base(model) if floating else model
    state = random_state(model, 0)
    workspace, given = Workspace(model), np.arange(model.nv) % 2 == 0
    link = model.link_names[-1]
    for used, call in (
            ('qv', lambda q, v, a: workspace.all_terms(q, v)),
            ('q', lambda q, v, a: workspace.configuration_terms(q)),
            ('q', lambda q, v, a: workspace.gravity_torques(q)),
            ('q', lambda q, v, a: workspace.mass_matrix(q)),
            ('q', lambda q, v, a: workspace.center_of_mass(q)),
            ('qv', lambda q, v, a: workspace.coriolis_matrix(q, v)),
            ('qva', workspace.inverse_dynamics), ('qva', workspace.forward_dynamics),
            ('qva', lambda q, v, a: workspace.hybrid_dynamics(q, v, a, a, given)),
            ('qva', workspace.matrices_dot), ('qva', workspace.torque_regressor),
            ('qva', workspace.inverse_dynamics_derivatives),
            ('qva', workspace.forward_dynamics_derivatives),
            ('q', lambda q, v, a: workspace.forward_kinematics(q)),
            ('q', lambda q, v, a: workspace.world_jacobian(q, link))):
        call(*state)
        for label, x in zip('qva', state):
            for k, bad in itertools.product(range(len(x)), (np.nan, np.inf, -np.inf)):
                x[k], right = bad, x[k]
                if label in used:
                    with pytest.raises(StateError):
                        call(*state)
                x[k] = right


def test_a_kept_workspace_has_the_jacobian_of_every_link(model, tree):
    one = rbd_ros.ModelBuilder('one').link('base').link('a', mass=1.0).joint(
        'j', 'revolute', 'base', 'a', xyz=(1.0, 2.0, 3.0), axis=(0.0, 1.0, 0.0)).build()
    none = load_quietly(example_urdf('quadrotor_base.urdf'))
    for robot in (model, tree, rbd_ros.with_floating_base(tree), one, none):
        workspace = Workspace(robot)
        for seed in range(2):
            q, *_ = random_state(robot, seed)
            poses = rbd_ros.forward_kinematics(robot, q)
            for name in (*robot.link_names, *reversed(robot.link_names)):
                J, T = workspace.world_jacobian(q, name)
                assert np.array_equal(J, rbd_ros.world_jacobian(robot, q, name))
                assert np.allclose(T, poses[robot.link_index(name)], rtol=0.0, atol=1e-12)


def test_copies_of_a_workspace_compute_the_same(tree):
    q, v, a = random_state(tree, 0)
    workspace = Workspace(tree)

    def results(one, q):
        return [x.copy() for x in (
            one.inverse_dynamics(q, v, a), one.gravity_torques(q), one.forward_dynamics(q, v, a),
            *one.world_jacobian(q, 'link5'), *one.all_terms(q, v),
            *one.inverse_dynamics_derivatives(q, v, a), *one.matrices_dot(q, v, a))]

    results(workspace, q)
    for again in (copy.deepcopy(workspace), pickle.loads(pickle.dumps(workspace))):
        for x, expected in zip(results(again, 2.0 * q), results(workspace, 2.0 * q)):
            assert np.array_equal(x, expected)


def arrays(result):
    """Return all arrays of a result."""
    if isinstance(result, tuple):
        return [x for part in result for x in arrays(part)]
    return [result] if isinstance(result, np.ndarray) else []


def test_workspace_gives_the_same_as_the_functions_and_keeps_its_arrays(model, tree):
    for robot in (model, tree):
        workspace = Workspace(robot)
        first = workspace.all_terms(*random_state(robot, 1)[:2])
        for seed in range(3):
            q, v, a = random_state(robot, seed)
            again = workspace.all_terms(q, v)
            assert all(x is y for x, y in zip(again, first))
            for got, expected in zip(again, rbd_ros.all_terms(robot, q, v)):
                assert np.array_equal(got, expected)
            assert np.array_equal(workspace.inverse_dynamics(q, v, a),
                                  rbd_ros.inverse_dynamics(robot, q, v, a))
            assert np.array_equal(workspace.forward_dynamics(q, v, a),
                                  rbd_ros.forward_dynamics(robot, q, v, a))


def test_torques_do_not_keep_a_larger_array_alive(tree):
    q, v, a = random_state(tree, 0)
    for torques in (rbd_ros.inverse_dynamics(tree, q, v, a), rbd_ros.gravity_torques(tree, q),
                    rbd_ros.bias_torques(tree, q, v), rbd_ros.forward_dynamics(tree, q, v, a)):
        assert torques.base is None


def test_models_cannot_be_changed(tree):
    for array in (tree.tree.robot, tree.gravity, tree.lower, tree.tree.link_pose,
                  tree.links[1].inertia, tree.links[1].com, tree.joints[1].placement):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 0.0
    with pytest.raises(AttributeError):
        tree.mass = 1.0


def test_robots_without_joints_have_a_centre_of_mass():
    model = load_quietly(example_urdf('quadrotor_base.urdf'))
    terms = rbd_ros.all_terms(model, [], [])
    assert terms.M.shape == (0, 0)
    assert np.allclose(terms.com, model.links[0].com)
    assert rbd_ros.inverse_dynamics(model, [], [], []).shape == (0,)
    assert rbd_ros.forward_dynamics(model, [], [], []).shape == (0,)


def kernel_modules():
    for source in PACKAGE.glob('kernels/**/*.py'):
        if source.parent.name not in ('jit', 'lanes'):
            name = '.'.join(source.relative_to(PACKAGE.parent).with_suffix('').parts)
            yield source, importlib.import_module(name.removesuffix('.__init__'))


def test_rows_of_bodies_have_columns_for_all_kernels():
    ends = {f'{kernels.__name__}.{name}': value for _, kernels in kernel_modules()
            for name, value in vars(kernels).items() if name.endswith('_COLUMNS')}
    assert len(ends) > 10
    assert all(SCRATCH < end <= COLUMNS for end in ends.values()), ends


def test_numba_compiles_no_helper_for_the_value_of_a_place_or_column():
    # It does so for each of Python's own whole numbers among the arguments.
    helpers = ('offset', 'load_integer', 'add_columns', *(
        f'{verb}{what}' for verb in ('load', 'store')
        for what in ('', '3', '33', '6', '_symmetric', '_inertia')))
    seen = 0
    for source, kernels in kernel_modules():
        calls = [node for node in ast.walk(ast.parse(source.read_text()))
                 if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                 and node.func.id in helpers]
        known = vars(kernels)
        for argument in itertools.chain(*(call.args for call in calls)):
            x = known.get(ast.unparse(argument), getattr(argument, 'value', None))
            if isinstance(x, (int, np.integer)):
                assert isinstance(x, np.int64), f'{source.name}: {ast.unparse(argument)}'
                seen += 1
    assert seen > 100


def test_the_workspace_of_a_thread_ends_with_it():
    model = random_tree(5, 4)
    with ThreadPoolExecutor(1) as pool:
        room = pool.submit(lambda: weakref.ref(workspace_of(model))).result()
    gc.collect()
    assert room() is None
    assert workspace_of(model).model is model


def test_plain_functions_use_one_workspace_for_each_thread_which_ends_with_the_robot():
    model = random_tree(5, 4)
    q, v, a = random_state(model, 0)
    first = workspace_of(model)
    assert workspace_of(model) is first
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(workspace_of, model).result()
    assert other is not first
    assert np.array_equal(other.inverse_dynamics(q, v, a),
                          rbd_ros.inverse_dynamics(model, q, v, a))
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(rbd_ros.mass_matrix(copied, q), rbd_ros.mass_matrix(model, q))
    assert workspace_of(copied) is not first
    # Nothing but the robot keeps it: no garbage collector is needed.
    robot, room = weakref.ref(model), weakref.ref(first)
    gc.disable()
    try:
        del model, first, other, pool
        assert robot() is None
        assert room() is None
    finally:
        gc.enable()


def test_threads_do_not_disturb_each_other():
    model = random_tree(6, 7)
    states = [random_state(model, seed) for seed in range(4)]
    expected = [rbd_ros.inverse_dynamics(model, *state) for state in states]

    def work(k):
        return all(np.array_equal(rbd_ros.inverse_dynamics(model, *states[k]), expected[k])
                   for _ in range(2000))
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(4)))


@pytest.mark.parametrize('package', ['rbd_ros', 'rbd_ros.analysis', 'rbd_ros.batch',
                                     'rbd_ros.control', 'rbd_ros.identification', 'rbd_ros.model'])
def test_dir_lists_only_public_names_after_imports_of_submodules(package):
    importlib.import_module('rbd_ros.quantities')
    importlib.import_module('rbd_ros.motions.retiming')
    package = importlib.import_module(package)
    assert {name for name in dir(package) if name[:2] != '__'} == set(package.__all__)
    assert '__doc__' in dir(package)
