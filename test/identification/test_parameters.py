# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Which parameters there are, how torques follow from them, and which of them torques can show."""

from covering import seeds
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification.parameters import LoadParameters, robot_parameters, States
from rbd_ros.model import with_friction
from rbd_ros.model.changes.drives import with_armature
from rbd_ros.model.joints import KINDS
from rbd_ros.model.positions.configurations import random_configuration
from robots import example_urdf, load_quietly, random_tree, relative_error

# Both sides are exact: rounding, a hundred times below on the worst tree.
EXACT = 1e-9
TREES = seeds(50, few=6)
EVERYTHING = ('viscous', 'viscous_asymmetry', 'coulomb', 'coulomb_asymmetry', 'stribeck', 'offset')
LOAD = (0.8, np.array([0.03, -0.02, 0.08]),
        np.array([[0.004, 0.0005, 0.0], [0.0005, 0.0035, -0.0004], [0.0, -0.0004, 0.003]]))


def random_robot(seed):
    """Return a random tree of all kinds of joints, with friction and rotors."""
    model = random_tree(seed, 3 + seed % 4, kinds=list(KINDS))
    rng = np.random.default_rng(seed)

    def some(scale=1.0):
        return scale * rng.uniform(0.2, 1.0, model.nv)

    return with_armature(with_friction(
        model, damping=some(), damping_asymmetry=some(0.2), friction=some(),
        friction_asymmetry=some(-0.2), stribeck_friction=some(), stribeck_velocity=some(),
        effort_offset=some(-1.0)), some(0.2))


def states(model, rng, count):
    """Return random states."""
    q = np.array([random_configuration(model, rng) for _ in range(count)])
    v, a = rng.normal(size=(2, count, model.nv))
    return States(q, v, a, np.sign(v))


def torques(model, some):
    """Return what motors bring up, state by state."""
    return np.array([rbd_ros.inverse_dynamics(model, q, v, a) + rbd_ros.friction_torques(model, v)
                     for q, v, a, _ in zip(*some)])


@pytest.mark.parametrize('friction, rotors', [
    ((), False), ((), True), (('viscous', 'coulomb', 'offset'), True), (EVERYTHING, True),
    (('coulomb',), False)])
@pytest.mark.parametrize('seed', range(5))
def test_known_and_regressor_times_parameters_are_the_torques(seed, friction, rotors):
    model = random_robot(seed)
    parameters = robot_parameters(model, friction, rotors)
    some = states(model, np.random.default_rng(seed), 10)
    got = parameters.known(some) + parameters.regressor(some) @ parameters.values
    assert relative_error(got, torques(model, some)) < EXACT
    # And those of another robot, whose other drives are alike.
    values = parameters.values * np.random.default_rng(seed).uniform(0.9, 1.1,
                                                                     len(parameters.values))
    got = parameters.known(some) + parameters.regressor(some) @ values
    assert relative_error(got, torques(parameters.model_with(values), some)) < EXACT
    again = robot_parameters(parameters.model_with(values), friction, rotors)
    assert again.names == parameters.names
    assert relative_error(again.values, values) < EXACT


@pytest.mark.parametrize('name, link', [
    ('ur5_robot.urdf', 'tool0'), ('ur5_robot.urdf', 'forearm_link'), ('panda.urdf', 'panda_hand')])
def test_known_torques_plus_regressor_times_payload_are_the_torques_with_the_payload(name, link):
    rng = np.random.default_rng(0)
    model = load_quietly(example_urdf(name))
    model = with_armature(with_friction(model, damping=rng.uniform(0.0, 1.0, model.nv),
                                        effort_offset=rng.normal(size=model.nv)),
                          rng.uniform(0.0, 1.0, model.nv))
    mass, com, inertia = LOAD
    shift = np.dot(com, com) * np.eye(3) - np.outer(com, com)
    entries = (inertia + mass * shift)[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
    parameters = LoadParameters(model, link)
    some = states(model, rng, 10)
    got = parameters.known(some) + parameters.regressor(some) @ [mass, *mass * com, *entries]
    assert relative_error(got, torques(rbd_ros.with_payload(model, link, *LOAD), some)) < EXACT


def check_base_parameters(model, base, seed, friction=(), rotors=False):
    """Compare base parameters with the regressor at states they were not made from."""
    parameters = robot_parameters(model, friction, rotors)
    rng = np.random.default_rng(seed)
    some = states(model, rng, 2 + 3 * len(parameters.names) // model.nv)
    Y = parameters.regressor(some).reshape(-1, len(parameters.names))
    assert relative_error(Y[:, base.independent] @ base.combination, Y) < EXACT
    # They are as many as the rank, and so none of them can be left out.
    size = np.linalg.svd(Y, compute_uv=False)
    rank = len(base.independent)
    assert size[rank - 1] > 1e-7 * size[0]
    assert not size[rank:].size or size[rank] < 1e-12 * size[0]
    assert base.names == tuple(parameters.names[k] for k in base.independent)
    assert np.array_equal(base.combination[:, base.independent], np.eye(rank))


@pytest.mark.parametrize('seed', TREES)
def test_base_parameters_reproduce_the_whole_regressor_for_trees_of_all_kinds(seed):
    model = random_robot(seed)
    check_base_parameters(model, identification.base_parameters(model), 100 + seed)
    options = {'friction': ('viscous', 'coulomb', 'offset'), 'rotors': True}
    check_base_parameters(model, identification.base_parameters(model, **options), 100 + seed,
                          **options)


def test_base_parameters_of_real_arms_are_as_many_as_in_the_literature():
    # 36 for arms like the Puma and the UR5 (Gautier and Khalil's rules), 43 for the Panda
    # (Gaz et al. 2019). Of its seven rotors all but the first two are seen apart from its links.
    ur5, panda = (load_quietly(example_urdf(name)) for name in ('ur5_robot.urdf', 'panda.urdf'))
    panda = rbd_ros.with_locked_joints(panda, {'panda_finger_joint1': 0.02})
    for model, count in ((ur5, 36), (panda, 43)):
        base = identification.base_parameters(model)
        assert len(base.names) == count
        check_base_parameters(model, base, 1)
    assert len(identification.base_parameters(panda, rotors=True).names) == 43 + 5


@pytest.mark.parametrize('limits', [{}, {'lower': 0.0, 'upper': 0.0}])
def test_base_parameters_of_a_pendulum_are_its_inertia_and_its_moments(limits):
    model = (rbd_ros.ModelBuilder('pendulum').link('a').link('b', 1.0)
             .joint('j', 'revolute', 'a', 'b', axis=(0, 0, 1), **limits)
             .build(gravity=(0, -9.81, 0)))
    assert identification.base_parameters(model).names == ('b/mcx', 'b/mcy', 'b/Izz')
    # A rotor is the same as inertia there, and an offset is not the same as gravity.
    base = identification.base_parameters(model, friction=('offset',), rotors=True)
    names = robot_parameters(model, ('offset',), True).names
    izz, offset, rotor = (base.combination[:, names.index(name)]
                          for name in ('b/Izz', 'j.effort_offset', 'j.armature'))
    assert len(base.names) == 4
    assert np.allclose(izz, rotor)
    assert np.sum(izz * offset) == 0.0


def test_unknown_columns_and_immobile_links_are_refused():
    model = random_tree(0, 3)
    with pytest.raises(rbd_ros.StateError, match="'coulomb_asymmetry' needs 'coulomb'"):
        identification.base_parameters(model, friction=('coulomb_asymmetry',))
    with pytest.raises(rbd_ros.StateError, match='columns must be'):
        identification.base_parameters(model, friction=('sticky',))
    for link, said in ((model.link_names[0], 'no joint moves it'), ('nowhere', 'nowhere')):
        with pytest.raises(rbd_ros.ModelError, match=said):
            identification.payload_partial(model, link, measured.samples(model, 0, 1.0))
