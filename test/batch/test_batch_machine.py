# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What outlives a batch: nothing that a later call could feel, but results where the user wants them.

The invariant: whatever was called before, in this thread or in others, and whether it was refused
or not, a batch returns what the methods of a new workspace return for each of its states, also
where it writes to arrays that earlier batches have filled, and arguments stay as they are.

"""

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import rule, RuleBasedStateMachine
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, batch, StateError, Workspace
from robots import example_urdf, load_quietly, random_tree

ALL_KINDS = ('revolute', 'prismatic', 'continuous', 'universal', 'spherical', 'free', 'planar')
ROBOTS = (random_tree(2, 6, kinds=ALL_KINDS), random_tree(1, 5, kinds=ALL_KINDS),
          load_quietly(example_urdf('panda.urdf')), random_tree(1, 13))
# What functions take, in letters; l: a link, t: a time.
BATCHES = {'inverse_dynamics': 'qva', 'forward_dynamics': 'qva', 'hybrid_dynamics': 'qvaa',
           'all_terms': 'qv', 'inverse_dynamics_derivatives': 'qva',
           'forward_dynamics_derivatives': 'qva', 'torque_regressor': 'qva',
           'gravity_torques': 'q', 'forward_kinematics': 'q', 'body_jacobian': 'ql',
           'world_jacobian': 'ql', 'jacobian_dot': 'qvl', 'world_jacobian_dot': 'qvl',
           'center_of_mass': 'q', 'com_jacobian': 'q', 'com_jacobian_dot': 'qv',
           'centroidal_momentum_matrix': 'q', 'centroidal_momentum_matrix_dot': 'qv',
           'integrate': 'qvt', 'difference': 'qq'}
PUSHED = tuple(name for name in BATCHES if 'dynamics' in name)
# Methods of a workspace that return more than the functions, and which of it these return.
PARTS = {'body_jacobian': 0, 'world_jacobian': 0, 'jacobian_dot': 1, 'world_jacobian_dot': 1,
         'centroidal_momentum_matrix_dot': 1}
# Side by side, sums round otherwise; solving for accelerations multiplies that by the condition of
# M, up to 1e5 with these robots.
ROUNDING = 1e-13
CONDITION = 1e5
# Sums over states.
SUMS = 1e-12


def listed(result):
    """Return results as a list of arrays."""
    return [np.array(x) for x in (result if isinstance(result, tuple) else (result,))]


def states_for(model, name, count, rng):
    """Return what a function takes for states."""
    def taken(letter):
        if letter in 'lt':
            return model.link_names[rng.integers(len(model.links))] if letter == 'l' else 0.3
        return rng.normal(size=(count, model.nq if letter == 'q' else model.nv))
    return [taken(letter) for letter in BATCHES[name]]


def computed_anew(model, name, *arguments, **options):
    """Return the results of one state by a workspace that is new."""
    if name in ('integrate', 'difference'):
        return listed(getattr(rbd_ros, name)(model, *arguments))
    found = getattr(Workspace(model), name)(*arguments, **options)
    return listed(found[PARTS[name]] if name in PARTS else found)


def copied(states):
    """Return copies of the arrays among arguments."""
    return [x.copy() if isinstance(x, np.ndarray) else x for x in states]


def of_state(states, k):
    """Return the arguments for one state."""
    return [x[k] if np.ndim(x) == 2 else x for x in states]


class BatchMachine(RuleBasedStateMachine):
    """Batches and single calls in any order."""

    # The first ones have the same kernels.
    robots = ROBOTS[:2]

    def __init__(self):
        super().__init__()
        self.results = {}

    @rule(k=st.integers(0, len(ROBOTS) - 1), name=st.sampled_from(sorted(BATCHES)),
          count=st.sampled_from((1, 3, 8, 13, 16)), seed=st.integers(0, 5),
          pushed=st.sampled_from((0, 1, 2)), mask=st.integers(0, 2 ** 20), masks=st.booleans(),
          kept=st.booleans(), small=st.booleans(), bad=st.booleans(), threads=st.booleans())
    def many(self, k, name, count, seed, pushed, mask, masks, kept, small, bad, threads):
        """Compute many states, one of them bad perhaps."""
        model, rng = self.robots[k % len(self.robots)], np.random.default_rng(seed)
        states = states_for(model, name, count, rng)
        options = {}
        if pushed and name in PUSHED:
            size = (count, 6) if pushed == 2 else 6
            options['external_wrenches'] = {model.link_names[-1]: rng.normal(size=size)}
        if name == 'hybrid_dynamics':
            given = np.array([bool(mask >> j & 1) for j in range(model.nv)])
            states.append(np.array([np.roll(given, j % 3) for j in range(count)])
                          if masks else given)
        if bad:
            worst = rng.integers(count)
            number = 1 if len(states) > 1 and np.ndim(states[1]) == 2 else 0
            states[number][worst, -1] = np.nan
        key = k, name, count, small
        if kept and key in self.results:
            options['out'] = self.results[key]
        before = copied(states)
        function = getattr(batch, name)
        if bad:
            with pytest.raises(StateError, match=f'state {worst}: '):
                function(model, *states, **options)
            return
        # In chunks of other threads, too, once there are enough states for these.
        repeated = -(-2 * batch.CHUNK // count) if threads and name == 'inverse_dynamics' else 1
        found = listed(function(model, *states, **options))
        assert all(np.array_equal(x, y) for x, y in zip(states, before))
        self.results[key] = (tuple(x.astype(np.float32) if small else x for x in found)
                             if len(found) > 1 else found[0].astype('f' if small else 'd'))
        rounding = ROUNDING * CONDITION + (2.0 ** -23 if small and 'out' in options else 0.0)
        for j in range(count):
            one = of_state(states, j)
            push = {link: np.broadcast_to(w, (count, 6))[j]
                    for link, w in options.get('external_wrenches', {}).items()}
            expected = computed_anew(model, name, *one,
                                     **({'external_wrenches': push} if push else {}))
            for x, y in zip(found, expected):
                assert np.all(np.abs(x[j] - y) <= rounding * max(1.0, np.max(np.abs(y))))
        if repeated > 1 and 'external_wrenches' not in options:
            many = function(model, *(np.tile(x, (repeated, 1)) for x in states), threads=2)
            assert np.array_equal(many, np.tile(function(model, *states), (repeated, 1)))

    @rule(k=st.integers(0, len(ROBOTS) - 1), name=st.sampled_from(sorted(BATCHES)),
          seed=st.integers(0, 5))
    def single(self, k, name, seed):
        """Compute one state, with the workspace that batches of this thread use."""
        model, rng = self.robots[k % len(self.robots)], np.random.default_rng(seed)
        arguments = of_state(states_for(model, name, 1, rng), 0)
        if name == 'hybrid_dynamics':
            arguments.append(np.arange(model.nv) % 2 == 0)
        function = getattr(rbd_ros, name, None) or getattr(analysis, name)
        found = listed(function(model, *arguments))
        expected = computed_anew(model, name, *arguments)
        assert all(np.array_equal(x, y) for x, y in zip(found, expected))

    @rule(k=st.integers(0, len(ROBOTS) - 1), count=st.sampled_from((1, 8, 13)),
          seed=st.integers(0, 5), weighted=st.booleans())
    def reduced(self, k, count, seed, weighted):
        """Compute products of regressors and what least squares need of them."""
        model, rng = self.robots[k % len(self.robots)], np.random.default_rng(seed)
        *states, x = states_for(model, 'hybrid_dynamics', count, rng)
        workspace = Workspace(model)
        Y = np.array([workspace.torque_regressor(*state).copy() for state in zip(*states)])
        pi, weights = rng.normal(size=Y.shape[2]), rng.uniform(0.0, 1.0, x.shape)
        rows = np.concatenate((Y, x[:, :, None]), axis=2)
        if weighted:
            rows *= np.sqrt(weights)[:, :, None]
        square = np.einsum('tij,tik->jk', rows, rows)
        options = {'weights': weights} if weighted else {}
        found = batch.normal_equations(model, *states, x, **options)
        R = batch.regressor_factor(model, *states, x, **options)
        for got, expected in (
                (batch.torque_regressor_product(model, *states, pi), Y @ pi),
                (batch.torque_regressor_transposed_product(model, *states, x),
                 np.einsum('tij,ti->tj', Y, x)),
                (found.matrix, square[:-1, :-1]), (found.vector, square[:-1, -1]),
                (found.square, square[-1, -1]), (R.T @ R, square)):
            assert np.all(np.abs(got - expected) <= SUMS * np.max(np.abs(expected)))


TestBatchMachine = BatchMachine.TestCase
TestBatchMachine.settings = settings(max_examples=5, stateful_step_count=25, deadline=None,
                                     suppress_health_check=list(HealthCheck))


@pytest.mark.long
class TestBatchMachineForLong(BatchMachine.TestCase):
    """The same in more orders, of more robots."""

    robots = ROBOTS
    settings = settings(TestBatchMachine.settings, max_examples=40)
