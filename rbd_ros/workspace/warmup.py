# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compile the kernels, or load them from the cache, before they are needed."""

from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from time import perf_counter

import numpy as np
from rbd_ros.kernels.joint_samples import take_plausible
from rbd_ros.model.constraints import with_constraints
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, Mimic
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import build_model
from rbd_ros.model.positions.configurations import neutral
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.quantity import QUANTITIES
from rbd_ros.workspace.variation import Variation

NEEDED_BY_NODES = (    # methods for topics and control laws come first, then those for services
    'all_terms', 'configuration_terms', 'inverse_dynamics', 'gravity_torques', 'hybrid_dynamics',
    'matrices_dot', 'slotine_li_regressor', 'forward_kinematics', 'world_jacobian',
    'jacobian_dot_v', 'task_space_dynamics', 'task_inertia', 'hybrid_dynamics_derivatives',
    'forward_dynamics_derivatives', 'torque_regressor')
WITH_LOOPS = ('inverse_dynamics', 'forward_dynamics', 'hybrid_dynamics', 'all_terms',
              'matrices_dot', 'forward_dynamics_derivatives', 'hybrid_dynamics_derivatives')


def warm_up(*, floating_base: bool = False, analysis: bool = True) -> Iterator[tuple[str, float]]:
    """
    Run every kernel once, on a robot with one joint; yield methods and their times, s.

    ``analysis``: also kernels that no node needs, and those for mimics, which nodes compile later.

    """
    kind = 'free' if floating_base else 'revolute'
    links = [Link('base'), *(Link(name, 1.0, inertia=0.1 * np.eye(3))
                             for name in ('link', 'a', 'b'))]
    joints = [Joint('joint', kind, 'base', 'link')]
    workspace = Workspace(build_model('warm-up', links[:2], joints))
    coupled = Workspace(build_model('warm-up', links, [
        *joints, Joint('one', 'revolute', 'link', 'a'),
        Joint('two', 'revolute', 'link', 'b', mimic=Mimic('one'))]))
    x, one = np.zeros(1), np.ones(1, bool)
    calls: list[tuple[str, Callable[[], object]]] = [
        *((name, call(workspace, name)) for name in NEEDED_BY_NODES),
        ('joint samples', partial(take_plausible, x, x, x, 1, np.zeros((1, 4), int), x, 0.0, 0.0,
                                  0.0, one, x, x, x, x, x))]
    if analysis:
        calls += [(f'{name} with mimics', call(coupled, name)) for name in NEEDED_BY_NODES]
        others = {'inverse_dynamics_packed', *(
            name for name, one in QUANTITIES.items() if one.method)} - {*NEEDED_BY_NODES}
        calls += [(name, call(workspace, name)) for name in sorted(others)]
        name = 'coriolis_matrix_derivatives'
        calls.append((f'{name} of the Christoffel form',
                      call(workspace, name, factorization='christoffel')))
    for name, run in calls:
        start = perf_counter()
        run()
        yield name, perf_counter() - start


def warm_up_loops() -> Iterator[tuple[str, float]]:
    """Run the kernels for closed loops once, as `warm_up` does."""
    x, z = np.eye(4), (0.0, 0.0, 1.0)
    x[0, 3] = 1.0
    links = [Link('base'), *(Link(name, 1.0, inertia=0.1 * np.eye(3)) for name in ('link', 'a'))]
    tree = build_model('warm-up', links, [
        Joint('one', 'revolute', 'base', 'link', axis=np.array(z)),
        Joint('two', 'revolute', 'base', 'a', x, np.array(z))])
    tip = np.eye(4)
    tip[1, 3] = 1.0
    workspace = Workspace(with_constraints(
        tree, [Constraint('rod', 'distance', 'link', 'a', tip, tip, 1.0)]))
    for name in WITH_LOOPS:
        start = perf_counter()
        call(workspace, name)()
        yield f'{name} with closed loops', perf_counter() - start


def call(workspace: Workspace, name: str, **options: object) -> Callable[[], object]:
    """Return the call of a method, with arguments of the right shapes."""
    model, method = workspace.model, getattr(workspace, name)
    q = np.ones(model.nq) if model.loops is None else neutral(model)
    v = np.zeros(model.nv)
    values = {**dict.fromkeys(('v', 'a', 'tau', 'v_r', 'a_r'), v), 'q': q, 'link': 'link',
              'motion': np.concatenate((q, v, v)), 'variation': Variation(),
              'prescribed': np.zeros(model.nv, bool), 'M': np.eye(model.nv),
              'contacts': (), 'actuated': np.ones(model.nv, bool), 'condition_limit': 2e3,
              # Uses the kernels of the Christoffel form, too.
              'factorization': 'body', **options}
    return partial(method, **{label: values[label] for label in signature(method).parameters
                              if label in values})
