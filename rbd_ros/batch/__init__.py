# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions of `rbd_ros` for many states at once, on all cores.

The functions are those of the same names in `rbd_ros` and `rbd_ros.analysis`. Arguments and
results have one state per row. Several states are computed side by side in the registers of the
processor, and threads take them in chunks; the memory needed besides arguments and results does
not grow with the number of states.

Every function takes ``threads``, their number (default: one per core), ``progress``, which is
called as ``progress(done, states)`` after every chunk, and ``out``: arrays that results are
written to and that are returned, in place of new ones. They are as an earlier call returned them,
or of the same shapes, and of float64 or float32. After an error their content is undefined. Of
``external_wrenches`` each is one moment and force (6,) for all states, or one a state (states, 6).

"""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'centroidal': [
        'center_of_mass', 'centroidal_momentum_matrix', 'centroidal_momentum_matrix_dot',
        'com_jacobian', 'com_jacobian_dot'],
    'configurations': ['difference', 'integrate'],
    'derivatives': ['forward_dynamics_derivatives', 'inverse_dynamics_derivatives'],
    'dynamics': ['all_terms', 'forward_dynamics', 'gravity_torques', 'hybrid_dynamics',
                 'inverse_dynamics'],
    'kinematics': ['body_jacobian', 'forward_kinematics', 'jacobian_dot', 'world_jacobian',
                   'world_jacobian_dot'],
    'least_squares': ['normal_equations', 'NormalEquations', 'regressor_factor'],
    'regressors': ['torque_regressor', 'torque_regressor_product',
                   'torque_regressor_transposed_product'],
    'threads': ['CHUNK'],
})
