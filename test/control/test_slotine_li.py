# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The adaptive controller: its Lyapunov function, what it learns, and bodies that can exist."""

from control_robots import bare_arm, LINK, POSE, random_reference, run, with_drives
from covering import covering
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import JointReference, SlotineLi
from rbd_ros.control.laws.slotine_li import DUAL, RANGE
from rbd_ros.model import inertial_parameters, with_inertial_parameters
from rbd_ros.model.changes.inertial import pseudo_inertia_of_parameters
from robots import random_tree

RATE, DAMPING = 5.0, 20.0
LOAD, PLACE = 1.0, (0.0, 0.02, 0.05)
# s^T K s is found by differences over steps of 1e-4 and 5e-5.
STEP = 1e-4


def swing(model, t):
    """Return the reference of a motion of all joints."""
    w = 1.0 + 0.4 * np.arange(model.nv)
    return JointReference(model, POSE + 0.4 * np.sin(w * t), 0.4 * w * np.cos(w * t),
                          -0.4 * w ** 2 * np.sin(w * t))


def divergence(true, believed):
    """Return the sum of D(P | P^) over the bodies."""
    total = 0.0
    for one, other in zip(true.reshape(-1, 10), believed.reshape(-1, 10)):
        A = np.linalg.solve(pseudo_inertia_of_parameters(other), pseudo_inertia_of_parameters(one))
        total += np.trace(A) - np.linalg.slogdet(A)[1] - 4.0
    return total


def lyapunov(model, controller, adaptation, q, v, reference):
    """Return V, and s^T K s."""
    s = v - reference.v - RATE * rbd_ros.difference(model, q, reference.q)
    return (0.5 * s @ rbd_ros.mass_matrix(model, q) @ s
            + divergence(inertial_parameters(model), controller.parameters) / adaptation,
            DAMPING * s @ s)


def test_the_dual_basis_makes_traces_of_products():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 10))
    assert np.trace(np.tensordot(x, DUAL, 1) @ pseudo_inertia_of_parameters(y)) == (
        pytest.approx(x @ y))


@pytest.mark.parametrize('seed', range(6))
def test_the_lyapunov_function_falls_at_the_rate_of_the_theorem(seed):
    model = random_tree(seed, 4, kinds=('revolute', 'prismatic', 'continuous', 'helical'))
    rng = np.random.default_rng(seed)
    believed = with_inertial_parameters(
        model, inertial_parameters(model) * np.repeat(rng.uniform(0.5, 2.0, model.nv), 10))
    q, v, adaptation = rng.normal(size=model.nq), rng.normal(size=model.nv), 1e-3
    reference = random_reference(model, rng, q)

    def moving(t):
        return JointReference(model, reference.q + t * reference.v + 0.5 * t * t * reference.a,
                              reference.v + t * reference.a, reference.a)

    errors = []
    for step in (STEP, 0.5 * STEP):
        controller = SlotineLi(believed, RATE, DAMPING, adaptation, friction_speed=None)
        V, lost = lyapunov(model, controller, adaptation, q, v, moving(0.0))
        t, qs, vs = run(model, controller, moving, q, v, step, step)
        controller.update(t[-1], qs[-1], vs[-1], moving(t[-1]))
        later, _ = lyapunov(model, controller, adaptation, qs[-1], vs[-1], moving(t[-1]))
        errors.append((later - V) / step + lost)
    assert abs(errors[1]) < 0.05 * lost
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.05)


def test_adaptation_identifies_an_unknown_payload_in_the_link_that_carries_it():
    arm = bare_arm()
    heavy = rbd_ros.with_payload(arm, LINK, LOAD, PLACE, 2e-3 * np.eye(3))
    controller = SlotineLi(arm, RATE, DAMPING, 30.0, links=[LINK], friction_speed=None)
    run(heavy, controller, lambda t: swing(arm, t), POSE, swing(arm, 0.0).v, 5.0, 4e-3)
    learnt = controller.parameters - inertial_parameters(arm)
    assert np.all(learnt[:-10] == 0.0)            # the others stay
    assert learnt[-10] == pytest.approx(LOAD, rel=0.1)
    controller.reset()
    assert np.array_equal(controller.parameters, inertial_parameters(arm))
    new = SlotineLi(arm, RATE, DAMPING, 30.0, links=[LINK], friction_speed=None)
    for one in (controller, new):
        for t in (0.0, 0.01, 0.02):
            one.update(t, POSE, np.zeros(7), swing(arm, t))
    assert np.any(new.parameters != inertial_parameters(arm))
    assert np.array_equal(controller.parameters, new.parameters)


@pytest.mark.parametrize('times, learns', [
    ((0.0, 0.05), True), ((0.0, 0.0), False), ((0.0, 0.2), False), ((0.0, -0.05), False)])
def test_parameters_adapt_neither_across_gaps_nor_backwards_in_time(times, learns):
    arm = bare_arm()
    controller = SlotineLi(arm, RATE, DAMPING, 1.0)
    for t in times:
        controller.update(t, POSE, np.zeros(7), JointReference(arm, POSE + 0.1))
    assert (controller.parameters != inertial_parameters(arm)).any() == learns


def test_links_that_cannot_adapt_are_refused_by_name():
    arm = bare_arm()
    point = rbd_ros.load_urdf_string(
        '<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia '
        'ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="1 0 0"/>'
        '</joint></robot>')
    with pytest.raises(rbd_ros.ModelError, match=r"link 'b'.*no body can have"):
        SlotineLi(point, 1.0, 1.0, 1.0)
    with pytest.raises(rbd_ros.ModelError, match="'base_link' is part of the root"):
        SlotineLi(arm, 1.0, 1.0, 1.0, links=['base_link'])
    with pytest.raises(rbd_ros.ModelError, match="no link 'nose'"):
        SlotineLi(arm, 1.0, 1.0, 1.0, links=['nose'])


class AdaptationMachine(RuleBasedStateMachine):
    """
    Drive the adaptation with whatever measures and references there may be.

    Whatever happens, every body that adapts is one that can exist, no more than RANGE from what it
    was, others are as they were, and torques are finite.

    """

    @initialize(links=st.sampled_from([None, [LINK], ['elbow_link', LINK]]),
                adaptation=st.floats(0.0, 1e6))
    def begin(self, links, adaptation):
        """Begin with a robot that adapts all or some links."""
        self.arm = with_drives(bare_arm(), friction=1.0)
        self.controller = SlotineLi(self.arm, RATE, DAMPING, adaptation, links=links)
        self.first, self.t = inertial_parameters(self.arm).reshape(-1, 10), 0.0
        bodies = {None: range(7), 1: [6], 2: [3, 6]}[links and len(links)]
        self.adapting = np.isin(np.arange(7), list(bodies))

    @rule(seed=st.integers(0, 2 ** 16), size=st.sampled_from([0.0, 1e-6, 0.1, 10.0, 1e4]),
          step=st.sampled_from([-1.0, 0.0, 1e-6, 1e-3, 0.1, 5.0]))
    def sample(self, seed, size, step):
        """Take a sample, however odd."""
        rng = np.random.default_rng(seed)
        self.t += step
        q, v, *r = size * rng.normal(size=(5, 7))
        tau = self.controller.update(self.t, q, v, JointReference(self.arm, *r))
        assert np.all(np.isfinite(tau))

    @rule()
    def refuse(self):
        """Refuse a sample, which changes nothing."""
        before = self.controller.parameters.copy()
        with pytest.raises(rbd_ros.StateError):
            self.controller.update(self.t + 0.01, np.full(7, np.nan), POSE,
                                   JointReference(self.arm, POSE))
        assert np.array_equal(before, self.controller.parameters)

    @rule()
    def reset(self):
        """Forget everything."""
        self.controller.reset()
        assert np.array_equal(self.controller.parameters, self.first.ravel())

    @invariant()
    def bodies_exist(self):
        """Check all bodies."""
        if not hasattr(self, 'controller'):
            return
        now = self.controller.parameters.reshape(-1, 10)
        assert np.array_equal(now[~self.adapting], self.first[~self.adapting])
        for one, first in zip(now[self.adapting], self.first[self.adapting]):
            L = np.linalg.inv(np.linalg.cholesky(pseudo_inertia_of_parameters(first)))
            w = np.linalg.eigvalsh(L @ pseudo_inertia_of_parameters(one) @ L.T)
            # As far as ten numbers, rounded, tell the smallest of eigenvalues.
            assert w[-1] <= RANGE * (1.0 + 1e-6)
            assert w[0] >= 1.0 / RANGE - 1e-12 * w[-1]


@pytest.mark.parametrize('runs', covering([5, 40], 5))
def test_adaptation_keeps_bodies_physical_and_torques_finite(runs):
    run_machine(AdaptationMachine, runs, 30)


@pytest.mark.parametrize('sign', [1.0, -1.0])
def test_inertias_that_are_always_pushed_the_same_way_stop_at_the_end_of_their_range(sign):
    arm = bare_arm()
    controller = SlotineLi(arm, RATE, DAMPING, 1e6, links=[LINK])
    first = pseudo_inertia_of_parameters(inertial_parameters(arm).reshape(-1, 10)[-1])
    reference = JointReference(arm, POSE + sign, np.full(7, sign), np.full(7, sign))
    L = np.linalg.inv(np.linalg.cholesky(first))
    # No factor of more than e in 0.1 s: 20 of those are 5e8.
    for k in range(60):
        controller.update(0.1 * k, POSE, np.zeros(7), reference)
    P = pseudo_inertia_of_parameters(controller.parameters.reshape(-1, 10)[-1])
    w = np.linalg.eigvalsh(L @ P @ L.T)
    assert (w[0] == pytest.approx(1e-5, rel=0.01)) or w[-1] == pytest.approx(1e5, rel=0.01)
    assert w[0] > 0.9e-5 and w[-1] < 1.1e5


def test_an_inertia_that_grows_or_shrinks_in_all_directions_stops_at_the_end_of_its_range():
    arm = bare_arm()
    controller = SlotineLi(arm, RATE, DAMPING, 1.0, links=[LINK])
    first = pseudo_inertia_of_parameters(inertial_parameters(arm).reshape(-1, 10)[-1])
    for sign, factor in ((-1.0, 1e5), (1.0, 1e-5)):
        controller.reset()
        controller._slope = sign * 100.0 * np.eye(4)[None]
        # A factor of e in 0.1 s, at most
        for _ in range(20):
            controller._adapt(0.1)
        P = pseudo_inertia_of_parameters(controller.parameters.reshape(-1, 10)[-1])
        w = np.linalg.eigvals(np.linalg.solve(first, P)).real
        if sign < 0.0:
            assert np.all(w > 0.2 * factor) and np.all(w < factor * (1.0 + 1e-6))
        else:
            assert w == pytest.approx(factor, rel=1e-3)


@pytest.mark.parametrize('step', [0.001, 0.1])
def test_parameters_change_no_faster_than_samples_can_follow(step):
    arm = bare_arm()
    controller = SlotineLi(arm, RATE, DAMPING, 1e6)
    for k in range(3):
        before = pseudo_inertia_of_parameters(controller.parameters.reshape(-1, 10))
        controller.update(step * k, POSE, np.zeros(7), JointReference(arm, POSE + 1.0))
    after = pseudo_inertia_of_parameters(controller.parameters.reshape(-1, 10))
    w = np.log(np.linalg.eigvals(np.linalg.solve(before, after)).real)
    # A factor of e in 0.1 s, and some body is at that limit.
    assert np.max(np.abs(w)) == pytest.approx(10.0 * step, rel=1e-6)
