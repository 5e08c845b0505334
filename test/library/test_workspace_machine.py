# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What outlives a call of a workspace: nothing that a later call could feel.

The invariant: whatever was called before, with whatever arguments, and whether it was refused or
not, a method returns exactly what that of a new workspace returns.

"""

from dataclasses import replace

from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import rule, RuleBasedStateMachine
from memory import memory_left
import numpy as np
import pytest
from rbd_ros import ModelError, StateError, Workspace
from rbd_ros.analysis import Contact, Variation
from robots import example_urdf, load_quietly, random_state, random_tree

ALL_KINDS = ('revolute', 'prismatic', 'continuous', 'fixed', 'universal', 'spherical', 'free',
             'planar', 'helical', 'cylindrical', 'euler_zyx')
ROBOTS = (random_tree(1, 9), random_tree(2, 7, kinds=ALL_KINDS),
          load_quietly(example_urdf('panda.urdf')))
METHODS = {
    'all_terms': 'qv', 'configuration_terms': 'q', 'inverse_dynamics': 'qva',
    'bias_torques': 'qv', 'gravity_torques': 'q', 'forward_dynamics': 'qva',
    'mass_matrix': 'q', 'coriolis_matrix': 'qv', 'center_of_mass': 'q', 'com_jacobian': 'q',
    'inverse_dynamics_derivatives': 'qva',
    'forward_dynamics_derivatives': 'qva', 'torque_regressor': 'qva',
    'slotine_li_regressor': 'qvaa', 'forward_kinematics': 'q', 'centroidal_momentum_matrix': 'q',
    'centroidal_momentum_matrix_dot': 'qv', 'com_jacobian_dot': 'qv',
    'mass_matrix_derivatives': 'q', 'coriolis_matrix_derivatives': 'qv',
    'gravity_torques_derivatives': 'q', 'matrices_dot': 'qva', 'parameter_derivatives': 'qv',
    'acceleration_parameter_derivatives': 'qva', 'momentum_regressor': 'qv',
    'energy_regressor': 'qv'}
# These take the name of a link after them.
LINK_METHODS = {
    'world_jacobian': 'q', 'body_jacobian': 'q', 'jacobian_dot': 'qv',
    'world_jacobian_dot': 'qv', 'jacobian_dot_v': 'qv', 'world_jacobian_dot_v': 'qv',
    'jacobian_ddot': 'qva', 'jacobian_derivatives': 'q', 'jacobian_dot_derivatives': 'qv',
    'task_space_dynamics': 'qv'}
PUSHED = ('inverse_dynamics', 'bias_torques', 'forward_dynamics', 'inverse_dynamics_derivatives',
          'forward_dynamics_derivatives', 'hybrid_dynamics', 'hybrid_dynamics_derivatives')
DIRECTIONAL = {'inverse_dynamics_derivative': 'qva', 'forward_dynamics_derivative': 'qva',
               'hybrid_dynamics_derivative': 'qvaa'}
FACTORED = ('all_terms', 'coriolis_matrix', 'slotine_li_regressor', 'coriolis_matrix_derivatives',
            'matrices_dot', 'parameter_derivatives')
# Bytes: less than the smallest object for every hundredth call.
LEFT = 512
# What configuration_terms does not write.
LEFT_ALONE = {'configuration_terms': (1, 3)}


def flat(result):
    """Return all numbers of a result, copied, but for those that have no meaning."""
    if isinstance(result, tuple):
        return [x for part in result for x in flat(part)]
    return [np.array(result)]


class WorkspaceMachine(RuleBasedStateMachine):
    """One workspace for each robot, and calls in any order."""

    def __init__(self):
        super().__init__()
        self.workspaces = [Workspace(model) for model in ROBOTS]

    @rule(k=st.integers(0, len(ROBOTS) - 1), method=st.sampled_from(sorted(METHODS)),
          seed=st.integers(0, 5), pushed=st.booleans(), body=st.booleans(), bad=st.booleans())
    def call(self, k, method, seed, pushed, body, bad):
        """Call a method, with a bad argument perhaps."""
        model, options = ROBOTS[k], {}
        if pushed and method in PUSHED:
            options['external_wrenches'] = {model.link_names[-1]: np.arange(6.0)}
        if body and method in FACTORED:
            options['factorization'] = 'body'
        arguments = self._arguments(model, METHODS[method], seed)
        if bad:
            arguments[-1][-1] = np.nan
        self._compare(k, method, arguments, options)

    @rule(k=st.integers(0, len(ROBOTS) - 1), seed=st.integers(0, 5), pushed=st.booleans(),
          derivatives=st.booleans(), mask=st.integers(0, 2 ** 20), array=st.booleans(),
          nothing=st.booleans(), bad=st.booleans())
    def hybrid(self, k, seed, pushed, derivatives, mask, array, nothing, bad):
        """Prescribe some accelerations, and give nothing where nothing is needed, perhaps."""
        model = ROBOTS[k]
        options = {'external_wrenches': {model.link_names[-1]: np.ones(6)}} if pushed else {}
        prescribed = np.array([bool(mask >> j & 1) for j in range(model.nv)])
        q, v, a, tau = self._arguments(model, 'qvaa', seed)
        if nothing:
            a[~prescribed], tau[prescribed] = np.nan, np.inf
        if bad:
            (a if prescribed[0] else tau)[0] = np.nan
        self._compare(k, 'hybrid_dynamics_derivatives' if derivatives else 'hybrid_dynamics',
                      [q, v, a, tau, prescribed if array else prescribed.tolist()], options)

    @rule(k=st.integers(0, len(ROBOTS) - 1), method=st.sampled_from(sorted(DIRECTIONAL)),
          seed=st.integers(0, 5), pushed=st.booleans(), bodies=st.booleans(), bad=st.booleans(),
          mask=st.integers(0, 2 ** 20))
    def directional(self, k, method, seed, pushed, bodies, bad, mask):
        """Ask for the derivative in one direction, or by what changes about the bodies, too."""
        model, rng = ROBOTS[k], np.random.default_rng(seed)
        options = {'external_wrenches': {model.link_names[-1]: np.ones(6)}} if pushed else {}
        arguments = self._arguments(model, DIRECTIONAL[method], seed)
        if method == 'hybrid_dynamics_derivative':
            arguments.append(np.array([bool(mask >> j & 1) for j in range(model.nv)]))
        variation = Variation(*rng.normal(size=(4, model.nv)))
        if bodies:
            variation = replace(variation, dwrenches={model.link_names[-1]: np.ones(6)},
                                world_fixed=model.link_names[-2:],
                                dinertia={model.link_names[2]: np.ones(10)},
                                dplacement={model.joints[1].name: np.ones(6)})
        if bad:
            (variation.dq, variation.dv, variation.da, arguments[0])[mask % 4][-1] = np.nan
        self._compare(k, method, [*arguments, variation], options)

    @rule(k=st.integers(0, len(ROBOTS) - 1), method=st.sampled_from(sorted(LINK_METHODS)),
          seed=st.integers(0, 5), link=st.integers(0, 5), bad=st.booleans())
    def of_a_link(self, k, method, seed, link, bad):
        """Ask for what concerns one link, such as its Jacobian."""
        arguments = self._arguments(ROBOTS[k], LINK_METHODS[method], seed)
        if bad:
            arguments[-1][-1] = np.nan
        self._compare(k, method, [*arguments, ROBOTS[k].link_names[link]], {})

    @rule(k=st.integers(0, len(ROBOTS) - 1), seed=st.integers(0, 5), bad=st.booleans(),
          length=st.integers(-2, 2))
    def packed(self, k, seed, bad, length):
        """Give position, velocity and acceleration in one array, of a wrong length perhaps."""
        motion = np.concatenate(self._arguments(ROBOTS[k], 'qva', seed))
        if bad:
            motion[-1 - seed] = np.inf
        motion = np.resize(motion, len(motion) + length)
        self._compare(k, 'inverse_dynamics_packed', [motion], {})

    @rule(k=st.integers(0, len(ROBOTS) - 1))
    def refused(self, k):
        """Push a link that is not there, or with what is no wrench."""
        q, v, a = self._arguments(ROBOTS[k], 'qva', 0)
        for wrenches, error in (({'nowhere': np.ones(6)}, ModelError),
                                ({ROBOTS[k].link_names[1]: np.ones(6),
                                  ROBOTS[k].link_names[-1]: [np.nan] * 6}, StateError)):
            with pytest.raises(error):
                self.workspaces[k].inverse_dynamics(q, v, a, external_wrenches=wrenches)

    @staticmethod
    def _arguments(model, letters, seed):
        rng = np.random.default_rng(seed)
        q = rng.normal(size=model.nq)
        return [q, *rng.normal(size=(3, model.nv))][:len(letters)]

    def _compare(self, k, method, arguments, options):
        results = []
        for workspace in (self.workspaces[k], Workspace(ROBOTS[k])):
            try:
                result = flat(getattr(workspace, method)(*arguments, **options))
                results.append([x for j, x in enumerate(result)
                                if j not in LEFT_ALONE.get(method, ())])
            except (ModelError, StateError) as error:
                results.append(str(error))
        kept, new = results
        assert type(kept) is type(new)
        assert all(np.array_equal(x, y) for x, y in zip(kept, new)) if isinstance(kept, list) \
            else kept == new


TestWorkspaceMachine = WorkspaceMachine.TestCase
TestWorkspaceMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None,
                                         suppress_health_check=list(HealthCheck))


# -- Memory. --------------------------------------------------------------------------------------
def calls():
    """Return calls of all methods, by name."""
    model = ROBOTS[0]
    workspace, (q, v, a) = Workspace(model), random_state(model, 3)
    given, mask = {'q': q, 'v': v, 'a': a}, np.arange(model.nv) % 2 == 0
    variation, link = Variation(v, a, v, a), model.moving_joints[-1][0].child

    def call(name, letters, *rest, **options):
        arguments = [given[letter] for letter in letters]
        return lambda: getattr(workspace, name)(*arguments, *rest, **options)

    found = {name: call(name, letters) for name, letters in METHODS.items()}
    found |= {name: call(name, letters, link) for name, letters in LINK_METHODS.items()}
    found |= {name: call(name, 'qvav', mask)
              for name in ('hybrid_dynamics', 'hybrid_dynamics_derivatives')}
    found |= {name: call(name, letters, *[mask] * name.startswith('hybrid'), variation)
              for name, letters in DIRECTIONAL.items()}
    motion = np.concatenate((q, v, a))
    found['inverse_dynamics_packed'] = lambda: workspace.inverse_dynamics_packed(motion)
    contacts = [Contact(link, 'surface')]
    found |= {name: call(name, 'qva', contacts)
              for name in ('constrained_dynamics', 'constrained_inverse_dynamics')}
    found['pushed'] = call('inverse_dynamics', 'qva', external_wrenches={link: np.ones(6)})
    return found


CALLS = calls()


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=[pytest.mark.long] if k % 6 else []) for k, name in enumerate(CALLS)])
def test_calls_of_a_workspace_leave_nothing_behind(name):
    assert memory_left(CALLS[name]) < LEFT


def test_memory_that_is_kept_is_found():
    kept = []
    assert memory_left(lambda: kept.append(0.5 * len(kept))) > 10 * LEFT
