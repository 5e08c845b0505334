# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Compiled code only: one algorithm per file, on the table of bodies of `rbd_ros.kernels.tree`.

Kernels write their results to arguments. Unless stated otherwise they return whether the results
are finite; if a vector has a wrong length, they write nothing and return False. Entries of
matrices for joints, or a joint and a body, that do not carry each other are not written and must
be zero already.

In citations V is Vlasblom, L Lynch and Park, K Kim, and G Garofalo, Ott and Albu-Schaeffer;
doc/equations.md lists the texts, doc/derivations.md derives equations that are in none of them.

"""
