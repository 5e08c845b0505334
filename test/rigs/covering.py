# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cases of a test: a few that cover the code, and more in `make test-long`."""

import pytest


def covering(cases, *few):
    """Return cases for `parametrize`, all but a few of them marked `long`."""
    cases = list(cases)
    assert few and all(one in cases for one in few)
    return [pytest.param(*(one if isinstance(one, tuple) else (one,)),
                         marks=[] if one in few else [pytest.mark.long]) for one in cases]


def seeds(count, few=12):
    """Return seeds of random cases for `parametrize`, all but the first few marked `long`."""
    return covering(range(count), *range(few))
