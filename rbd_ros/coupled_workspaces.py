# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Workspaces of robots whose coordinates are not those of their tree."""

from rbd_ros.kernels.jit.numba_backend import WAY
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES, Workspace
from rbd_ros.workspace.closed_loops import ClosedMethods
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.machine_methods import interpreted


class CoupledWorkspace(CoupledMethods, Workspace):
    """A workspace of a robot whose joints share coordinates."""


class ClosedWorkspace(ClosedMethods, Workspace):
    """A workspace of a robot with closed loops."""

    def __init__(self, model: Model, *, fresh: bool = False) -> None:
        super().__init__(model, self._workspace_of_tree(model), fresh=fresh)

    def _workspace_of_tree(self, model: Model) -> Workspace:
        tree = Workspace(model.unconstrained)
        # Attributes of an object whose `vars` were asked for take longer to look up.
        return interpreted(tree) if WAY == 'cc' else tree


def map_all() -> None:
    """Map the results of declared methods that are not written out for closed loops."""
    for name, one in QUANTITIES.items():
        for methods in (CoupledMethods, ClosedMethods):
            if name in vars(methods):
                getattr(methods, name).__doc__ = one.method.__doc__
        if one.maps and name not in vars(ClosedMethods):
            ClosedMethods.add_mapped(name, one.method, one.maps)


map_all()
