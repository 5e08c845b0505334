# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Errors that are explained after a kernel has failed each name their own cause.

Kernels only return that something is wrong; the arguments and the configuration are checked
afterwards, with what the kernel has left in the workspace.

"""

from inspect import getmembers, isfunction, signature

import numpy as np
import pytest
import rbd_ros
from rbd_ros import (
    analysis, codegen, ModelBuilder, ModelError, SingularError, StateError, with_locked_joints,
    Workspace)

BODY = {'mass': 1.0, 'com': (0.5, 0.1, 0.2), 'inertia': (0.1, 0.2, 0.25)}
HINGE, HALF = {'axis': (0, 0, 1)}, np.pi / 2.0
# Arguments that are no vectors.
OTHER = {'link': 'hand', 'variation': analysis.Variation(),
         'contacts': [analysis.Contact('hand', 'point', (0.0, 0.0, 0.1))]}
VECTORS = ('q', 'v', 'a', 'tau', 'v_r', 'a_r')
# Methods that compute accelerations.
ACCELERATE = ('acceleration_parameter_derivatives', 'forward_dynamics',
              'forward_dynamics_derivative', 'forward_dynamics_derivatives', 'hybrid_dynamics',
              'hybrid_dynamics_derivative', 'hybrid_dynamics_derivatives')
# Methods whose results are quadratic in v, in every robot.
QUADRATIC = ('inverse_dynamics', 'bias_torques', 'forward_dynamics', 'hybrid_dynamics',
             'inverse_dynamics_derivatives', 'torque_regressor', 'energy_regressor')


def with_gimbal(builder, kind):
    """Return a robot whose hand is on Euler angles, the middle one of which may be singular."""
    builder.link('hand', **BODY).joint('gimbal', kind, 'arm', 'hand', xyz=(1, 0, 0))
    return builder.build()


def tree(kind='euler_zyx'):
    """Return a robot without loops and mimics."""
    builder = ModelBuilder('tree').link('base').link('arm', **BODY)
    return with_gimbal(builder.joint('turn', 'revolute', 'base', 'arm', **HINGE), kind)


def mimics():
    """Return a robot with a joint that follows another."""
    builder = ModelBuilder('mimics').link('base').link('arm', **BODY).link('finger', **BODY)
    builder.joint('turn', 'revolute', 'base', 'arm', **HINGE)
    builder.joint('follow', 'revolute', 'arm', 'finger', mimic=('turn', -2.0), **HINGE)
    return with_gimbal(builder, 'euler_zyx')


def loops():
    """Return a parallelogram, singular where it is stretched: at 0."""
    builder = ModelBuilder('loops').link('base')
    for name, parent, child, x in (('turn', 'base', 'arm', 0), ('coupler', 'arm', 'bar', 1),
                                   ('rocker', 'base', 'lever', 2)):
        builder.link(child, **BODY).joint(name, 'revolute', parent, child, xyz=(x, 0, 0), **HINGE)
    builder.constraint('pin', 'revolute', 'bar', 'lever', xyz_a=(2, 0, 0), xyz_b=(1, 0, 0))
    return with_gimbal(builder, 'euler_zyx')


def closed(turn, gimbal):
    """Return q of the parallelogram."""
    values = {'turn': turn, 'coupler': -turn, 'rocker': turn, 'gimbal_z': 0.1,
              'gimbal_y': gimbal, 'gimbal_x': -0.2}
    return np.array([values[name] for name in ROBOTS['loops'].position_names])


with pytest.warns(UserWarning, match='singular in the neutral'):
    ROBOTS = {'tree': tree(), 'quaternion': tree('spherical'), 'mimics': mimics(),
              'loops': loops()}
REGULAR = {
    'tree': np.array([0.5, 0.1, 0.3, -0.2]), 'quaternion': np.array([0.5, 0.1, 0.3, -0.2, 0.9]),
    'mimics': np.array([0.5, 0.1, 0.3, -0.2]), 'loops': closed(0.5, 0.3)}
IN_LINE = "axes of the joint 'gimbal' are in line here"
# Configurations at which all methods fail, or only those that compute accelerations.
BAD_Q = {
    'tree': [('in line', np.array([0.5, 0.1, HALF, -0.2]), ACCELERATE, SingularError, IN_LINE)],
    'mimics': [('in line', np.array([0.5, 0.1, HALF, -0.2]), ACCELERATE, SingularError, IN_LINE)],
    'quaternion': [('no quaternion', np.array([0.5, 0.0, 0.0, 0.0, 0.0]), None, StateError,
                    "the quaternion of joint 'gimbal'")],
    'loops': [('no inertia', closed(0.5, HALF), ACCELERATE, SingularError, 'moves no inertia'),
              ('open', closed(0.5, 0.3) + [0.1, 0, 0, 0, 0, 0], None, StateError, 'are open'),
              ('stretched', closed(0.0, 0.3), None, SingularError,
               "the loop of 'pin' is singular here")]}


def methods(robot):
    """Return the methods of a workspace whose arguments are known here, with their names."""
    known = {*VECTORS, *OTHER, 'prescribed'}
    found = {}
    for name, method in getmembers(type(Workspace(ROBOTS[robot])), isfunction):
        labels = [label for label, one in signature(method).parameters.items()
                  if one.default is one.empty and one.kind is not one.VAR_KEYWORD][1:]
        # Without loops there are no forces that hold them.
        if name[0] != '_' and labels and known.issuperset(labels) and (
                robot == 'loops' or name != 'constraint_forces'):
            found[name] = labels
    return found


def arguments(robot, labels):
    """Return good arguments."""
    model = ROBOTS[robot]
    good = {label: np.linspace(0.3, -0.4, model.nv) for label in VECTORS}
    good |= {**OTHER, 'q': REGULAR[robot], 'prescribed': np.zeros(model.nv, bool)}
    return {label: good[label] for label in labels}


def errors(robot):
    """Yield what fails: a name, a method, its arguments, the exception and its message."""
    model = ROBOTS[robot]
    for method, labels in methods(robot).items():
        good = arguments(robot, labels)
        for label in {*labels} & {*VECTORS}:
            names = model.position_names if label == 'q' else model.velocity_names
            # Accelerations count where they are prescribed, torques where they are not.
            rest = {**good, 'prescribed': np.full(model.nv, label == 'a')}
            rest = {one: rest[one] for one in labels}
            for bad, message in (
                    (np.nan, f"{label} of '{names[1]}' is nan; it must be finite"),
                    (-np.inf, f"{label} of '{names[1]}' is -inf; it must be finite")):
                yield (f'{method}: {label} {bad}', method,
                       {**rest, label: np.where(np.arange(len(names)) == 1, bad, good[label])},
                       StateError, message)
            yield (f'{method}: short {label}', method, {**rest, label: good[label][1:]},
                   StateError, rf'{label} has the shape \({len(names) - 1},\)')
            yield (f'{method}: no {label}', method, {**rest, label: None}, StateError,
                   f'{label} must be real numbers, got None')
        if 'prescribed' in labels:
            yield (f'{method}: prescribed', method, {**good, 'prescribed': good['v']}, StateError,
                   'prescribed must be')
        if method in QUADRATIC:
            yield (f'{method}: overflow', method, {**good, 'v': np.full(model.nv, 1e200)},
                   StateError, f"the dynamics of robot '{model.name}' are not finite here")
        for name, q, which, kind, message in BAD_Q[robot]:
            if which is None or method in which:
                yield f'{method}: {name}', method, {**good, 'q': q}, kind, message


def numbers(result, method=''):
    """Return all numbers of a result, copied, in one row."""
    if method == 'configuration_terms':     # which leaves those of velocities as they are
        result = result.M, result.g, result.com_jacobian, result.com
    if isinstance(result, (tuple, list)):
        return np.concatenate([np.zeros(0), *map(numbers, result)])
    return np.ravel(result).astype(float).copy()


def fails(workspace, row):
    """Check that a method fails with its own message."""
    name, method, given, kind, message = row
    with np.errstate(all='ignore'), pytest.raises(kind, match=message) as caught:
        getattr(workspace, method)(**given)
    assert type(caught.value) is kind, name


@pytest.mark.parametrize('robot', ROBOTS)
def test_every_error_names_its_cause_after_earlier_failures(robot):
    rows = list(errors(robot))
    workspace, later = Workspace(ROBOTS[robot]), [row for row in rows if row[1] in (
        'inverse_dynamics', 'forward_dynamics', 'hybrid_dynamics')]
    good = {method: arguments(robot, labels) for method, labels in methods(robot).items()}
    expected = {method: numbers(getattr(Workspace(ROBOTS[robot]), method)(**given), method)
                for method, given in good.items()}
    for k, row in enumerate(rows):
        fails(workspace, row)
        # All others follow in turn.
        fails(workspace, later[k % len(later)])
        fails(workspace, row)
        fails(workspace, later[(7 * k + 3) % len(later)])
        found = numbers(getattr(workspace, row[1])(**good[row[1]]), row[1])
        assert np.array_equal(found, expected[row[1]]), row[0]


@pytest.mark.long
@pytest.mark.parametrize('robot', ROBOTS)
def test_errors_of_accelerations_name_their_cause_after_each_other(robot):
    rows = [row for row in errors(robot) if row[1] in ('forward_dynamics', 'hybrid_dynamics')]
    workspace = Workspace(ROBOTS[robot])
    for first in rows:
        for second in rows:
            fails(workspace, first)
            fails(workspace, second)


def test_the_tables_hold_every_method_that_explains_its_errors():
    assert {'mass_matrix', 'jacobian_ddot', 'slotine_li_regressor', 'matrices_dot', *ACCELERATE,
            *QUADRATIC} <= {*methods('tree')}
    assert 'constraint_forces' in methods('loops')
    left_out = {name for name, _ in getmembers(Workspace, isfunction) if name[0] != '_'} - {
        *methods('tree')}
    # Others have other arguments: a motion in one vector, a mass matrix.
    assert left_out == {'check', 'constraint_forces', 'inverse_dynamics_packed', 'task_inertia'}


def test_plain_functions_refuse_robots_and_links_that_are_not_there():
    with pytest.raises(ModelError, match="has no link 'nowhere'"):
        Workspace(ROBOTS['tree']).body_jacobian(REGULAR['tree'], 'nowhere')


@pytest.mark.parametrize('call, meant', [
    (lambda arm: Workspace(arm).body_jacobian(REGULAR['tree'], 'hnad'), 'hand'),
    (lambda arm: with_locked_joints(arm, {f'{arm.joints[0].name}x': 0.0}), None),
    (lambda arm: codegen.trace(arm, 'mass_matrx'), 'mass_matrix')])
def test_errors_about_names_suggest_similar_ones(call, meant):
    arm = ROBOTS['tree']
    with pytest.raises(ModelError, match=f"did you mean '{meant or arm.joints[0].name}'"):
        call(arm)


def test_python_can_suggest_names_of_modules():
    with pytest.raises(AttributeError) as raised:
        print(rbd_ros.mass_matrx)
    assert raised.value.name == 'mass_matrx' and 'mass_matrix' in dir(raised.value.obj)
