# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.textbook.screw_chains import ScrewChain as ScrewChain, unit_screws as unit_screws
from rbd_ros.textbook.stacked_form import (stacked_inverse_dynamics as stacked_inverse_dynamics,
    stacked_matrices as stacked_matrices, stacked_terms as stacked_terms,
    StackedDynamics as StackedDynamics, StackedMatrices as StackedMatrices,
    StackedTerms as StackedTerms)
from rbd_ros.textbook.sums_over_links import (
    christoffel_coriolis_matrix as christoffel_coriolis_matrix,
    christoffel_symbols as christoffel_symbols,
    com_frame_gravity_torques as com_frame_gravity_torques,
    com_frame_mass_matrix as com_frame_mass_matrix)
