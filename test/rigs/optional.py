# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Optional packages of tests: a test that uses one that is not installed skips by its name."""

import pytest


class Optional:
    """A module that is imported when a test first uses it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        # Asked of every global while tests are collected
        if attribute.startswith(('_', 'pytest')):
            raise AttributeError(attribute)
        return getattr(pytest.importorskip(self._name), attribute)
