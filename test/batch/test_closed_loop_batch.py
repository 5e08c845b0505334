# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`rbd_ros.batch` gives robots with closed loops what plain functions give them."""

from inspect import signature

from closed_robots import closed_robot
from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, batch, StateError
from rbd_ros.batch import functions
from rbd_ros.batch.tasks import Problem
from rbd_ros.batch.threads import CHUNK
from rbd_ros.model.positions.closure import equations_and_gaps

STATES = 7


@pytest.fixture(params=covering(['four_bar', 'delta', 'balls', 'mimics and balls'],
                                'four_bar', 'delta'))
def states(request):
    model, _, q, v, _, _ = closed_robot(request.param)
    rng = np.random.default_rng(0)
    Q = np.array([rbd_ros.integrate(model, q, v, 0.01 * k) for k in range(STATES)])
    return model, Q, *rng.normal(size=(3, STATES, model.nv))


def same(found, expected):
    if not isinstance(found, tuple):
        found, expected = (found,), [(one,) for one in expected]
    for x, y in zip(found, zip(*expected, strict=True), strict=True):
        assert np.array_equal(x, np.array(y))


def test_every_function_is_that_of_one_state(states):
    model, Q, V, A, Tau = states
    link = model.link_names[-1]
    arguments = {'Q': Q, 'V': V, 'A': A, 'Tau': Tau}
    for name in {*functions.__all__} - {'hybrid_dynamics', 'mass_matrix'}:
        labels = signature(getattr(batch, name)).parameters
        own = [x for label, x in arguments.items() if label in labels]
        rest = (link,) if 'link' in labels else ()
        plain = getattr(rbd_ros, name, None) or getattr(analysis, name)
        found = getattr(batch, name)(model, *own, *rest)
        same(found, [plain(model, *state, *rest) for state in zip(*own)])
        again = getattr(batch, name)(model, *own, *rest, threads=2)
        same(again, [plain(model, *state, *rest) for state in zip(*own)])
        out = getattr(batch, name)(model, *own, *rest, out=found)
        assert out is found or out[0] is found[0]
        nothing = getattr(batch, name)(model, *(x[:0] for x in own), *rest)
        for x, y in zip(nothing if isinstance(nothing, tuple) else [nothing],
                        found if isinstance(found, tuple) else [found]):
            assert x.shape == (0, *y.shape[1:])
    same(batch.mass_matrix(model, Q), [rbd_ros.all_terms(model, q, np.zeros(model.nv)).M
                                       for q in Q])


def test_dynamics_of_many_states_need_no_calls_from_python(states, monkeypatch):
    def alone(self, k):
        raise AssertionError(f'state {k} was computed by a call of its own')
    monkeypatch.setattr(Problem, 'alone', alone)
    model, Q, V, A, Tau = states
    count = 2 * CHUNK // STATES + 1     # more states than are computed at once
    for name, own in (('inverse_dynamics', (Q, V, A)), ('forward_dynamics', (Q, V, Tau)),
                      ('all_terms', (Q, V)), ('inverse_dynamics_derivatives', (Q, V, A)),
                      ('forward_dynamics_derivatives', (Q, V, Tau))):
        found = getattr(batch, name)(model, *(np.tile(x, (count, 1)) for x in own))
        same(found, [getattr(rbd_ros, name)(model, *state) for state in zip(*own)] * count)


def test_errors_name_the_state(states):
    model, Q, V, A, _ = states
    opened = Q.copy()
    J = np.abs(equations_and_gaps(model.loops, Q[3])[0]).max(axis=0)
    tree = model.unconstrained
    opened[3] = rbd_ros.integrate(tree, Q[3], np.eye(tree.nv)[np.argmax(J)], 1e-3)
    for call in (lambda: batch.inverse_dynamics(model, opened, V, A),
                 lambda: batch.all_terms(model, opened, V),
                 lambda: batch.forward_dynamics(model, opened, V, A),
                 lambda: batch.normal_equations(model, opened, V, A, A)):
        with pytest.raises(StateError, match=r"state 3: the loops of robot '.*' are open"):
            call()
    V = V.copy()
    V[5, 0] = np.nan
    with pytest.raises(StateError, match='state 5: v of '):
        batch.inverse_dynamics(model, Q, V, A)
    with pytest.raises(StateError, match='state 5: '):
        batch.integrate(model, Q, V, 0.01)
