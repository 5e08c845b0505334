# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The worked examples do what they say."""

import pathlib
import runpy

import sympy

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples'
# Rounding, of sums of a dozen terms.
ROUNDING = 1e-12


def test_two_link_arm_derives_the_equations_of_lynch_and_park(capsys):
    arm = runpy.run_path(str(EXAMPLES / 'two_link_arm.py'))
    m1, m2, L1, L2, g = arm['PARAMETERS']
    (t1, t2), (w1, w2), (a1, a2) = arm['q'], arm['v'], arm['a']
    # L, after (9.8), with its misprints put right.
    tau_1 = (((m1 + m2) * L1 ** 2 + m2 * (2 * L1 * L2 * sympy.cos(t2) + L2 ** 2)) * a1
             + m2 * (L1 * L2 * sympy.cos(t2) + L2 ** 2) * a2
             - m2 * L1 * L2 * (2 * w1 * w2 + w2 ** 2) * sympy.sin(t2)
             + (m1 + m2) * L1 * g * sympy.cos(t1) + m2 * g * L2 * sympy.cos(t1 + t2))
    tau_2 = (m2 * (L1 * L2 * sympy.cos(t2) + L2 ** 2) * a1 + m2 * L2 ** 2 * a2
             + m2 * L1 * L2 * w1 ** 2 * sympy.sin(t2) + m2 * g * L2 * sympy.cos(t1 + t2))
    torques = arm['equations_of_motion']()
    assert sympy.simplify(torques - sympy.Matrix([tau_1, tau_2])) == sympy.zeros(2, 1)

    M, C, gravity = arm['matrices']()
    v, a = sympy.Matrix([w1, w2]), sympy.Matrix([a1, a2])
    assert sympy.simplify(M * a + C * v + gravity - torques) == sympy.zeros(2, 1)
    M_rate = M.diff(t1) * w1 + M.diff(t2) * w2
    skew = sympy.simplify(M_rate - 2 * C)
    assert sympy.simplify(skew + skew.T) == sympy.zeros(2, 2)
    assert skew != sympy.zeros(2, 2)

    assert 0.0 < arm['largest_difference']() < ROUNDING
    arm['main']()
    assert 'tau2 = ' in capsys.readouterr().out
