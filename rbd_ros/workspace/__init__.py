# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Workspaces: the arrays that kernels read and write, and what a declaration of quantities is."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'rbd_ros.quantities': ['Workspace'], 'workspace': ['workspace_of']})
