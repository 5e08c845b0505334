# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions that show the parameters of closed loops: limits of all joints, and what they show."""

from dataclasses import replace

from closed_robots import closed_robot, driven
import numpy as np
import pytest
import rbd_ros
from rbd_ros import ModelError, StateError
from rbd_ros.cli.main import main
from rbd_ros.identification import excitation_limits, excite
from rbd_ros.model import inertial_parameters, with_constraints, with_inertial_parameters
from rbd_ros.model.constraints import rebuild
from rbd_ros.motions.excitation import criterion
from rbd_ros.motions.excitation.criterion import Criterion
from rbd_ros.motions.excitation.fourier_series import RestBasis
from rbd_ros.recordings.tables import read_table
from robots import relative_error

SEARCH = {'duration': 8.0, 'harmonics': 4, 'steps': 12}
# Of the gradient: central differences of the value, whose own parts are differences.
GRADIENT = 2e-3
ELBOWS = {'left_elbow': (-0.8, 0.5), 'right_elbow': (-0.5, 0.8)}


def five_bar(limits=None):
    """Return a five-bar, its oracle, and the same with other limits of its passive joints."""
    model, oracle, *_ = closed_robot('five_bar')
    return rebuild(model, joints=[
        replace(joint, lower=(limits[joint.name][0],), upper=(limits[joint.name][1],))
        if limits and joint.name in limits else joint for joint in model.joints]), oracle


def followed(oracle, X):
    """Return the closed configurations along positions of the motors, from zero."""
    q, Q = np.zeros(oracle.tree.nq), []
    for x in np.concatenate((np.linspace(0.0, 1.0, 9)[:, None] * X[0], X)):
        q[oracle.independent] = x
        q = oracle.close(q, oracle.independent)
        Q.append(q.copy())
    return np.array(Q[9:])


@pytest.mark.parametrize('elbows', [None, ELBOWS])
def test_motions_keep_to_the_limits_of_all_joints(elbows):
    model, oracle = five_bar(elbows)
    found = excite(model, **SEARCH)
    assert found.joint_names == ('left_shoulder', 'right_shoulder')
    assert found.condition_number < 0.5 * found.at_first
    q, v, a = found.motion.at(np.linspace(0.0, SEARCH['duration'], 101))
    assert np.all((q >= model.lower) & (q <= model.upper))
    assert np.all(np.abs(v) <= model.velocity_limit)
    Q = followed(oracle, q)
    tau = [oracle.inverse_dynamics(*state) for state in zip(Q, v, a)]
    friction = rbd_ros.friction_torques(model, v, q=Q)
    assert np.all(np.abs(tau + friction) <= model.effort_limit)
    names = model.position_names
    ranges = {name: (Q[:, names.index(name)].min(), Q[:, names.index(name)].max())
              for name in ELBOWS}
    for name, (low, high) in (elbows or {}).items():
        middle, half = 0.5 * (low + high), 0.45 * (high - low)      # 0.9 of the range
        assert middle - half <= ranges[name][0] and ranges[name][1] <= middle + half
    if not elbows:      # so that the limits above matter
        assert any(ranges[name][0] < low or ranges[name][1] > high
                   for name, (low, high) in ELBOWS.items())


@pytest.fixture
def rubbing():
    """Return a five-bar with strong motors, whose joints all have friction and springs."""
    model = driven(five_bar()[0], 4)
    return rebuild(model, joints=[replace(joint, effort=(1e3,) * joint.nv) if joint.name in
                                  model.velocity_names else joint for joint in model.joints])


def test_the_gradient_is_that_of_the_value(rubbing):
    model, basis = rubbing, RestBasis(4.0, 3, 24)
    judge = Criterion(model, basis, excitation_limits(model), np.random.default_rng(1))
    rng = np.random.default_rng(2)
    x = 0.1 * rng.normal(size=basis.size * model.nv)
    for weight in (0.0, 10.0):
        value, gradient = judge(x, weight)
        assert np.isfinite(value)
        for _ in range(2):
            step = 1e-5 * rng.normal(size=len(x))
            change = judge(x + step, weight)[0] - judge(x - step, weight)[0]
            assert change == pytest.approx(2.0 * gradient @ step, abs=GRADIENT * np.linalg.norm(
                gradient) * np.linalg.norm(step))


def test_friction_of_passive_joints_counts_in_efforts(rubbing):
    model = rubbing
    bare = rebuild(model, joints=[joint if joint.name in model.velocity_names or not joint.nv
                                  else replace(joint, friction=(), stribeck_friction=(),
                                               damping=(), effort_offset=())
                                  for joint in model.joints])
    q, v = rbd_ros.neutral(model), np.array([3.0, 2.0])
    basis, found = RestBasis(4.0, 3, 24), []
    for one in (model, bare):
        judge = Criterion(one, basis, excitation_limits(one, share=1.0), np.random.default_rng(1))
        found.append(judge._effort_shares(q[None], v[None], v[None])[0] * judge._effort)
    with_passive, without = (rbd_ros.friction_torques(one, v, q=q, smooth=judge._smooth)
                             for one in (model, bare))
    assert np.max(np.abs(with_passive - without)) > 0.1
    assert relative_error(found[0] - found[1], with_passive - without) < 1e-9


@pytest.mark.parametrize('name', [
    'five_bar', pytest.param('palletizer', marks=pytest.mark.long)])
def test_torques_are_recovered_from_the_motion(name):
    model, oracle, *_ = closed_robot(name)
    true = with_inertial_parameters(model, 1.3 * inertial_parameters(model))
    found = excite(model, **SEARCH)
    q, V, A = found.motion.at(np.linspace(0.0, SEARCH['duration'], 160))
    Q = followed(oracle, q)

    def torques(robot, Q, V, A):
        return np.array([rbd_ros.inverse_dynamics(robot, *state) for state in zip(Q, V, A)]) \
            + rbd_ros.friction_torques(robot, V, q=Q)
    fit = rbd_ros.identify(model, Q, V, A, torques(true, Q, V, A)).model
    rng = np.random.default_rng(0)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(50)])
    V, A = rng.normal(size=(2, 50, model.nv))
    expected = torques(true, Q, V, A)
    assert relative_error(torques(fit, Q, V, A), expected) < 5e-3
    assert relative_error(torques(model, Q, V, A), expected) > 0.1


def test_the_command_writes_the_motion_of_the_motors(tmp_path, capsys):
    out = tmp_path / 'way.csv'
    assert main(['excite', 'urdf/five_bar.urdf', '-o', str(out), '--duration', '5',
                 '--harmonics', '3', '--steps', '2', '--rate', '20']) in (0, 2)
    assert 'right_shoulder' in capsys.readouterr().out
    names, rows = read_table(out)
    assert [name for name in names if name.endswith('/position')] == [
        'left_shoulder/position', 'right_shoulder/position']
    assert len(rows) == 101


def test_robots_that_cannot_be_excited_are_named(monkeypatch):
    monkeypatch.setattr(criterion, 'STATES_PER_COLUMN', 1)
    monkeypatch.setattr(criterion, 'DRAWS', 1)
    model = closed_robot('four_bar').model
    rocker = with_constraints(model, model.constraints, ['rocker'])
    with pytest.raises(StateError, match=r'the loops can be closed, within the limits of '
                       r'dependent joints, in .* random positions of the independent joints '
                       'only'):
        excite(rocker, excitation_limits(rocker, lower=[2.5], upper=[3.5], velocity=[1.0],
                                         effort=[9.0]))
    with pytest.raises(ModelError, match='joints with one coordinate are needed'):
        excitation_limits(rbd_ros.with_floating_base(model))
