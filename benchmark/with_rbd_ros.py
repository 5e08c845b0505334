# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of this package, as the benchmarks call them."""

from functools import partial

import numpy as np
from rbd_ros import Workspace


def functions(robot):
    """
    Return for each function the timed call, and a function that returns its outputs by name.

    Other libraries use the same names, with outputs transformed to our coordinates.

    """
    w, q, v, a, tau = Workspace(robot.model), robot.q, robot.v, robot.a, robot.tau
    prescribed = np.arange(robot.model.nv) % 2 == 0
    calls = {
        'all terms': partial(w.all_terms, q, v),
        'inverse dynamics': partial(w.inverse_dynamics, q, v, a),
        'inverse dynamics, packed': partial(w.inverse_dynamics_packed, np.concatenate((q, v, a))),
        'forward dynamics': partial(w.forward_dynamics, q, v, tau),
        'hybrid dynamics': partial(w.hybrid_dynamics, q, v, a, tau, prescribed),
        'gravity torques': partial(w.gravity_torques, q),
        'derivatives of inverse dynamics': partial(w.inverse_dynamics_derivatives, q, v, a),
        'derivatives of forward dynamics': partial(w.forward_dynamics_derivatives, q, v, tau),
        'torque regressor': partial(w.torque_regressor, q, v, a),
        'world Jacobian': partial(w.world_jacobian, q, robot.tip),
        'body Jacobian': partial(w.body_jacobian, q, robot.tip),
        'rate of the body Jacobian': partial(w.jacobian_dot, q, v, robot.tip),
        'rate of the world Jacobian': partial(w.world_jacobian_dot, q, v, robot.tip),
        'rate of the Jacobian times v': partial(w.jacobian_dot_v, q, v, robot.tip),
        'second rate of the Jacobian': partial(w.jacobian_ddot, q, v, a, robot.tip),
        'derivatives of the Jacobian': partial(w.jacobian_derivatives, q, robot.tip),
        'derivatives of its rate': partial(w.jacobian_dot_derivatives, q, v, robot.tip),
        'centroidal momentum matrix': partial(w.centroidal_momentum_matrix, q),
        'and its rate': partial(w.centroidal_momentum_matrix_dot, q, v),
        'task space': partial(w.task_space_dynamics, q, v, robot.tip),
        'derivatives of M': partial(w.mass_matrix_derivatives, q),
        'derivatives of C': partial(w.coriolis_matrix_derivatives, q, v),
        'derivatives of g': partial(w.gravity_torques_derivatives, q),
        'rates of M, C and g': partial(w.matrices_dot, q, v, a),
        'derivatives by parameters': partial(w.parameter_derivatives, q, v),
        'those of accelerations': partial(w.acceleration_parameter_derivatives, q, v, tau),
        'momentum regressor': partial(w.momentum_regressor, q, v),
        'energy regressor': partial(w.energy_regressor, q, v),
    }
    names = {'all terms': ('M', 'C', 'g', 'C v', 'J_CoM', 'CoM'),
             'world Jacobian': ('J', 'pose'),
             'derivatives of inverse dynamics': ('by q', 'by v', 'by a'),
             'derivatives of forward dynamics': ('by q', 'by v', 'by tau'),
             'body Jacobian': ('J', 'pose'),
             'rate of the body Jacobian': ('J', 'rate'),
             'rate of the world Jacobian': ('J', 'rate'),
             'and its rate': ('A', 'rate'),
             'derivatives of its rate': ('by q', 'by v'),
             'derivatives of C': ('by q', 'by v')}

    def outputs(name):
        result = calls[name]()
        named = dict(zip(names[name], result)) if name in names else {name: result}
        if name == 'all terms':
            named['C v + g'] = named['C v'] + named['g']
        return named

    return {name: (call, partial(outputs, name)) for name, call in calls.items()}
