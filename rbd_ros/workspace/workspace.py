# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The workspace that plain functions of a robot use, one for each thread."""

from __future__ import annotations

from weakref import ref

from rbd_ros import workspace
from rbd_ros.model.model import Model


def workspace_of(model: Model) -> workspace.Workspace:
    """Return the workspace of plain functions, which lives as long as the robot and the thread."""
    try:
        return model._workspaces.workspace
    except AttributeError:
        # The class imports the modules of all its methods, and these import this one.
        found = workspace.Workspace(model, fresh=True)
    # The robot keeps the workspace, which must not keep the robot in turn.
    found._model_of = ref(model)    # type: ignore[assignment]
    model._workspaces.workspace = found
    return found
