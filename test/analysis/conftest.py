# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots on their feet, loaded once."""

import pytest
from standing_robots import Floating, ROBOTS


@pytest.fixture(scope='session', params=ROBOTS)
def standing(request):
    """Return a robot with feet, here and in Pinocchio."""
    return Floating(request.param)


@pytest.fixture(scope='session')
def talos():
    """Return a humanoid."""
    return Floating('talos')


@pytest.fixture(scope='session')
def anymal():
    """Return a quadruped."""
    return Floating('anymal')
