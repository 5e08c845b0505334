# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots with closed loops, read from URDF and written to it."""

from pathlib import Path
import warnings

from loop_robots import loop_robot, MOTORS, moved_motors, URDF
import numpy as np
import pytest
import rbd_ros
from rbd_ros import load_urdf, load_urdf_string, ModelWarning, save_urdf, UrdfError
from rbd_ros.model import Constraint, with_constraints
from robots import load_quietly, relative_error

# Solutions of small systems whose condition is below 1e3, as in the oracle's own tests.
SOLUTIONS = 1e-9
# Sines and cosines of angles that were found from a rotation.
ROTATION = 1e-15
FOUR_BAR = (URDF / 'four_bar.urdf').read_text()
PIN = FOUR_BAR[FOUR_BAR.index('<constraint'):FOUR_BAR.index('</robot>')]
# Passive joints of a loop have no motor on purpose.
pytestmark = pytest.mark.filterwarnings('error')


def with_pin(*changes):
    """Return the four-bar with changes (old text, new text) of its constraint."""
    pin = PIN
    for old, new in changes:
        assert old in pin
        pin = pin.replace(old, new)
    return FOUR_BAR.replace(PIN, pin)


@pytest.mark.parametrize('name', MOTORS)
def test_robots_of_the_folder_are_those_of_the_oracle(name):
    model, oracle = load_urdf(URDF / f'{name}.urdf', strict=True), loop_robot(name)
    assert list(model.velocity_names) == list(model.independent_joints) == MOTORS[name]
    rng = np.random.default_rng(0)
    lower, upper = (np.clip(x, -0.5, 0.5) for x in (model.lower, model.upper))
    q = moved_motors(oracle, rng.uniform(lower, upper))
    v, a = rng.normal(size=(2, model.nv))
    assert relative_error(rbd_ros.inverse_dynamics(model, q, v, a),
                          oracle.inverse_dynamics(q, v, a)) < SOLUTIONS


def test_effort_limits_of_0_of_independent_joints_cause_a_warning():
    model = load_urdf_string(FOUR_BAR)
    assert not model.warnings and not rbd_ros.with_payload(model, 'rocker_link', 1.0).warnings
    other = with_constraints(model, model.constraints, ['rocker'])
    assert other.warnings == ('joint rocker: effort limit 0: taken as not stated; where a node '
                              'needs it, set command_limits',)


def test_a_floating_base_moves_the_loop():
    fixed, model = load_urdf_string(FOUR_BAR), load_urdf_string(FOUR_BAR, floating_base=True)
    assert (model.nq, model.nv) == (10, 7)
    assert model.velocity_names[6] == 'crank'
    q = rbd_ros.integrate(fixed, rbd_ros.neutral(fixed), [0.7], 1.0)
    at = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0, *q])
    # The base rests: the joints move as on a fixed base.
    found = rbd_ros.inverse_dynamics(model, at, [0.0] * 6 + [2.0], [0.0] * 6 + [3.0])[6]
    assert found == pytest.approx(rbd_ros.inverse_dynamics(fixed, q, [2.0], [3.0])[0], abs=1e-12)


@pytest.mark.parametrize('change, message', [
    (('"coupler_link"', '"copler"'), "constraint 'pin' names link 'copler', .* coupler_link"),
    (('"rocker_link"', '"coupler_link"'), "'pin' joins link 'coupler_link' to itself"),
    (('type="revolute"', 'type="hinge"'), "constraint 'pin': its type is 'hinge'"),
    (('<parent_origin xyz="0.5 0 0"/>', '<parent_origin xyz="1.4 0 0"/>'),
     "loops of robot 'four_bar' cannot be closed: constraint 'pin' is open by 900 mm"),
    (('</constraint>', '</constraint>' + PIN), "2 constraints are called 'pin'"),
    (('</constraint>', '</constraint>' + PIN.replace('pin', 'x').replace('revolute', 'link')
      .replace('<parent_axis xyz="0 -1 0"/>', '').replace('<child_axis xyz="0 -1 0"/>', '')),
     'no degree of freedom: remove one of pin, x'),
    (('<parent link="coupler_link"/>', ''), "constraint 'pin'.*parent"),
    (('<parent_axis ', '<bogus/><parent_axis '), "constraint 'pin'.*<bogus>"),
])
def test_wrong_constraints_are_errors_that_name_them(change, message, tmp_path, monkeypatch):
    monkeypatch.setattr('rbd_ros.model.constraints.TRIES', 10)
    path = tmp_path / 'robot.urdf'
    path.write_text(with_pin(change))
    with pytest.raises(UrdfError, match=f'robot.urdf: .*{message}'):
        load_urdf(path)


# -- Writing. -------------------------------------------------------------------------------------
def every_kind():
    """Return a robot whose equal arms, in parallel planes, have one constraint of each kind."""
    build = rbd_ros.ModelBuilder('both').link('base')
    for side, y in (('left', 0.0), ('right', 0.4)):
        before = 'base'
        for k in range(7):
            link = f'{side}_{k}'
            build.link(link, mass=1.0, com=(0.0, 0.0, 0.1), inertia=(0.1, 0.1, 0.1))
            build.joint(link, 'continuous', before, link, xyz=(0.0, y, 0.0 if k == 0 else 0.2),
                        rpy=(0.0, 0.3, 0.0), axis=(0.0, 1.0, 0.0),
                        effort=0.0 if side == 'right' or k == 1 else 9.0)     # passive joints
            before, y = link, 0.0
    return (build.constraint('ball', 'point', 'left_2', 'right_2', xyz_a=(0.0, 0.4, 0.1),
                             rpy_a=(0.1, 0.2, 0.3), xyz_b=(0.0, 0.0, 0.1))
            .constraint('hinge', 'revolute', 'left_4', 'right_4', xyz_a=(0.0, 0.4, 0.0),
                        rpy_a=(0.4, 0.5, 0.6), rpy_b=(0.4, 0.5, 0.6))
            .constraint('bond', 'weld', 'right_6', 'left_6', xyz_b=(0.0, 0.4, 0.0))
            .constraint('rod', 'distance', 'left_1', 'base', xyz_a=(0.0, 0.0, 0.2),
                        xyz_b=(0.3, 0.0, -0.1), length=0.5)
            .build())


def assert_same(model, expected):
    assert model.velocity_names == expected.velocity_names
    assert len(model.constraints) == len(expected.constraints)
    for found, one in zip(model.constraints, expected.constraints):
        assert (found.name, found.kind, found.link_a, found.link_b, found.length) == (
            one.name, one.kind, one.link_a, one.link_b, one.length)
        for a, b in ((found.placement_a, one.placement_a), (found.placement_b, one.placement_b)):
            assert np.allclose(a, b, rtol=0.0, atol=4 * ROTATION)


def test_every_kind_of_constraint_is_written_and_read_again(tmp_path):
    model = every_kind()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)       # no limits
        save_urdf(model, tmp_path / 'robot.urdf')
    again = load_quietly(tmp_path / 'robot.urdf')
    assert_same(again, model)
    q = rbd_ros.neutral(model)
    v = np.linspace(-1.0, 1.0, model.nv)
    assert relative_error(rbd_ros.inverse_dynamics(again, q, v, v),
                          rbd_ros.inverse_dynamics(model, q, v, v)) < SOLUTIONS


@pytest.mark.parametrize('name', MOTORS)
def test_unchanged_constraints_keep_their_text(name, tmp_path):
    source = URDF / f'{name}.urdf'
    model, path = load_urdf(source), tmp_path / 'robot.urdf'
    save_urdf(model, path, source=source)

    def body(path):
        return ''.join(path.read_text().partition('<robot')[1:])
    assert body(path) == body(Path(source))


def test_changed_constraints_are_written_and_others_removed(tmp_path):
    tree, path = load_urdf_string(FOUR_BAR).unconstrained, tmp_path / 'robot.urdf'
    text = FOUR_BAR.replace('</robot>', PIN.replace('"pin"', '"old"') + '</robot>').replace(
        '<parent_origin xyz="0.5 0 0"/>', '<parent_origin xyz="0.5 0 0" quat_xyzw="0 0 0 1"/>')
    moved = np.eye(4)
    moved[0, 3] = 0.45
    model = with_constraints(tree, [Constraint('pin', 'point', 'coupler_link', 'rocker_link',
                                               moved, [[1, 0, 0, 0], [0, 1, 0, 0],
                                                       [0, 0, 1, 0.4], [0, 0, 0, 1]])])
    save_urdf(model, path, source=text)
    assert path.read_text().count('<constraint') == 1
    assert_same(load_urdf(path), model)
    save_urdf(tree, path, source=text)
    assert '<constraint' not in path.read_text()
    with pytest.warns(ModelWarning, match='effort limit 0'):
        assert load_urdf(path).nv == 3


def test_other_independent_joints_cause_a_warning(tmp_path):
    model = load_urdf_string(FOUR_BAR)
    other = with_constraints(model, model.constraints, ['rocker'])
    with pytest.warns(ModelWarning, match='cannot hold the independent joints rocker: the robot '
                      'of this file has crank'):
        save_urdf(other, tmp_path / 'robot.urdf')
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        save_urdf(model, tmp_path / 'robot.urdf')
