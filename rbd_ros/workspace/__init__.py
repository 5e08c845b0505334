# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Workspaces: how arrays reach the kernels and come back, by topic."""

from rbd_ros.workspace.workspace import Workspace, workspace_of

__all__ = ['Workspace', 'workspace_of']
