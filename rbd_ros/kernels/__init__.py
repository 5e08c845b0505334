# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Compiled code, and nothing else: recursions over the table of bodies.

In citations V is Vlasblom, L Lynch and Park, K Kim, and G Garofalo, Ott and Albu-Schaeffer;
doc/equations.md lists the texts, and doc/derivations.md has what is in none of them.

"""
