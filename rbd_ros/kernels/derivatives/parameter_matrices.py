# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of M, C and g with respect to the inertial parameters of the moving bodies.

For one body, in the axes of its link, with twist V, columns J_i of its Jacobian, and A_j the rate
of a column with respect to the world,

    M_ij = J_i^T G J_j,    g_i = J_i^T G (0, -gravity),
    C_ij = J_i^T (G (A_j - h ad_V J_j) - (1 - h) ad_V^T G J_j - h ad_Jj^T G V),

h = 1/2 for the Christoffel form of C and 0 for that of the body. For parameters, `entries` of the
products x^T G y, and ``links`` see `rbd_ros.kernels.regressors`. Garofalo et al. (13).

"""

import math

from rbd_ros.kernels.jit.compiled import long_kernel
from rbd_ros.kernels.regressors import entries, link_pose
from rbd_ros.kernels.tree.coordinates import (
    clear_matrices, clear_matrix, coordinate_at, put_element)
from rbd_ros.kernels.tree.layout import (
    columns_of, constant3, fits, GRAVITY, GROUND, load6, number, parent, store6)
from rbd_ros.kernels.tree.traversal import forward_pass, S_, V_, WORLD_COLUMNS
from rbd_ros.kernels.tree.vectors import ad, scale, scale6, sub6, to_child, unrotate

# Columns of `robot`, in the axes of the current link, of each joint that carries it: J_i, ad_V J_i
# and A_i - h ad_V J_i.
J_, TURNED_, RATE_, PARAMETER_COLUMNS = columns_of(WORLD_COLUMNS, 6, 6, 6)


@long_kernel
def parameter_matrices(robot, traits, q, v, links, h, M, C, g):
    """Write the derivatives of M, C, shape (nv, nv, 10 links), and g, shape (nv, 10 links)."""
    if not fits(robot, q, v):
        return False
    clear_matrices(traits, M)
    clear_matrices(traits, C)
    clear_matrix(traits, g)
    forward_pass(robot, traits, q, v, None, None)
    gravity, total = constant3(robot, GROUND, GRAVITY), 0.0
    for k in range(len(links)):
        body, R, r = link_pose(robot, links, k)
        V = to_child(R, r, load6(robot, body, V_))
        up = ((0.0, 0.0, 0.0), scale(-1.0, unrotate(R, gravity)))
        total += r[0] + R[0][0] + V[0][0] + V[1][0]
        c, b = 10 * k, body
        while b > 0:
            S = load6(robot, b, S_)
            J = to_child(R, r, S)
            turned = ad(V, J)
            rate = to_child(R, r, ad(load6(robot, b, V_), S))
            store6(robot, b, J_, J)
            store6(robot, b, TURNED_, turned)
            store6(robot, b, RATE_, sub6(rate, scale6(h, turned)))
            x = entries(J, up)
            for p in range(10):
                put_element(traits, g, coordinate_at(robot, b), c + p, x[p])
            b = parent(robot, b)
        other = body
        while other > 0:
            i = coordinate_at(robot, other)
            J_i, turned = load6(robot, other, J_), load6(robot, other, TURNED_)
            b = body
            while b > 0:
                j = coordinate_at(robot, b)
                J = load6(robot, b, J_)
                x = entries(J_i, load6(robot, b, RATE_))
                y = entries(turned, J)
                z = entries(ad(J, J_i), V)
                for p in range(10):
                    put_element(traits, C[i], j, c + p, x[p] - (1.0 - h) * y[p] - h * z[p])
                if number(robot, b) <= number(robot, other):
                    x = entries(J_i, J)
                    for p in range(10):
                        put_element(traits, M[i], j, c + p, x[p])
                        if b != other:
                            put_element(traits, M[j], i, c + p, x[p])
                b = parent(robot, b)
            other = parent(robot, other)
    return math.isfinite(total)
