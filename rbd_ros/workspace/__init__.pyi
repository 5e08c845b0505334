# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.quantities import Workspace as Workspace
from rbd_ros.workspace.workspace import workspace_of as workspace_of
