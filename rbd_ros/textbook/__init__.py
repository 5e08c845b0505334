# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations as printed in the texts: slow, for readers and for tests.

In citations V is Vlasblom, L Lynch and Park, K Kim, and G Garofalo, Ott and Albu-Schaeffer.
doc/equations.md lists the texts and the function that computes each equation.

"""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'screw_chains': ['ScrewChain', 'unit_screws'],
    'stacked_form': [
        'stacked_inverse_dynamics', 'stacked_matrices', 'stacked_terms', 'StackedDynamics',
        'StackedMatrices', 'StackedTerms'],
    'sums_over_links': [
        'christoffel_coriolis_matrix', 'christoffel_symbols', 'com_frame_gravity_torques',
        'com_frame_mass_matrix']})
