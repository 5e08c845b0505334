# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compile the kernels, or load them from the cache, before they are needed."""

from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter

import numpy as np

from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, Mimic
from rbd_ros.model.model import build_model
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.variation import Variation


def warm_up(*, floating_base: bool = False, analysis: bool = True) -> Iterator[tuple[str, float]]:
    """
    Run every kernel once, on a robot with one joint.

    Parameters
    ----------
    floating_base : bool
        Prepare for robots with ball or free joints, rather than for robots without.
    analysis : bool
        Also prepare what no node needs, such as derivatives of Jacobians and matrices.

    Yields
    ------
    str, float
        The name of a method of `Workspace`, and how long it took, s.

    """
    kind = 'free' if floating_base else 'revolute'
    links = [Link('base'), *(Link(name, 1.0, inertia=0.1 * np.eye(3))
                             for name in ('link', 'a', 'b'))]
    joints = [Joint('joint', kind, 'base', 'link')]
    model = build_model('warm-up', links[:2], joints)
    workspace = Workspace(model)
    q, v = np.ones(model.nq), np.zeros(model.nv)
    prescribed, still = np.zeros(model.nv, bool), Variation()
    # Kernels for joints that mimic others are the same for all kinds.
    copying = Workspace(build_model('warm-up', links, [
        *joints, Joint('one', 'revolute', 'link', 'a'),
        Joint('two', 'revolute', 'link', 'b', mimic=Mimic('one'))]))
    q_c, v_c = np.ones(copying.model.nq), np.zeros(copying.model.nv)
    # What topics and control laws call comes first, then what services do.
    calls: list[tuple[str, Callable[[], object]]] = [
        ('all_terms', lambda: workspace.all_terms(q, v, factorization='body')),
        ('configuration_terms', lambda: workspace.configuration_terms(q)),
        ('inverse_dynamics', lambda: workspace.inverse_dynamics(q, v, v)),
        ('gravity_torques', lambda: workspace.gravity_torques(q)),
        ('hybrid_dynamics', lambda: workspace.hybrid_dynamics(q, v, v, v, prescribed)),
        ('matrices_dot', lambda: workspace.matrices_dot(q, v, v)),
        ('slotine_li_regressor', lambda: workspace.slotine_li_regressor(q, v, v, v)),
        ('forward_kinematics', lambda: workspace.forward_kinematics(q)),
        ('world_jacobian', lambda: workspace.world_jacobian(q, 'link')),
        ('jacobian_dot_v', lambda: workspace.jacobian_dot_v(q, v, 'link')),
        ('task_space_dynamics', lambda: workspace.task_space_dynamics(q, v, 'link')),
        ('task_inertia', lambda: workspace.task_inertia(
            workspace.configuration_terms(q).M, q, 'link', condition_limit=2e3,
            length=1.0)),
        ('hybrid_dynamics_derivatives',
         lambda: workspace.hybrid_dynamics_derivatives(q, v, v, v, prescribed)),
        ('forward_dynamics_derivatives',
         lambda: workspace.forward_dynamics_derivatives(q, v, v)),
        ('torque_regressor', lambda: workspace.torque_regressor(q, v, v)),
        *((f'{name} with mimics', partial(getattr(copying, name), q_c, *[v_c] * count))
          for name, count in (('inverse_dynamics', 2), ('forward_dynamics_derivatives', 2),
                              ('matrices_dot', 2), ('torque_regressor', 2)))]
    if analysis:
        calls += [
            ('inverse_dynamics_packed',
             lambda: workspace.inverse_dynamics_packed(np.concatenate((q, v, v)))),
            ('inverse_dynamics_derivative',
             lambda: workspace.inverse_dynamics_derivative(q, v, v, still)),
            ('hybrid_dynamics_derivative',
             lambda: workspace.hybrid_dynamics_derivative(q, v, v, v, prescribed, still)),
            ('body_jacobian', lambda: workspace.body_jacobian(q, 'link')),
            ('jacobian_dot', lambda: workspace.jacobian_dot(q, v, 'link')),
            ('jacobian_ddot', lambda: workspace.jacobian_ddot(q, v, v, 'link')),
            ('jacobian_derivatives', lambda: workspace.jacobian_derivatives(q, 'link')),
            ('jacobian_dot_derivatives',
             lambda: workspace.jacobian_dot_derivatives(q, v, 'link')),
            ('centroidal_momentum_matrix', lambda: workspace.centroidal_momentum_matrix(q)),
            ('centroidal_momentum_matrix_dot',
             lambda: workspace.centroidal_momentum_matrix_dot(q, v)),
            ('mass_matrix_derivatives', lambda: workspace.mass_matrix_derivatives(q)),
            ('coriolis_matrix_derivatives', lambda: [
                workspace.coriolis_matrix_derivatives(q, v, factorization=factorization)
                for factorization in ('christoffel', 'body')]),
            ('matrices_dot of the body form',
             lambda: workspace.matrices_dot(q, v, v, factorization='body')),
            ('parameter_derivatives', lambda: workspace.parameter_derivatives(q, v)),
            ('acceleration_parameter_derivatives',
             lambda: workspace.acceleration_parameter_derivatives(q, v, v)),
            ('momentum_regressor', lambda: workspace.momentum_regressor(q, v)),
            ('energy_regressor', lambda: workspace.energy_regressor(q, v))]
    for name, call in calls:
        start = perf_counter()
        call()
        yield name, perf_counter() - start
