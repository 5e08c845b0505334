# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters that outputs and commands depend on."""

from typing import Annotated, NamedTuple

from rbd_ros._internal.setting import Setting
from rbd_ros.control import EffortConvention
from rbd_ros.workspace.memory.results import Factorization


class PublishingSettings(NamedTuple):
    """The parameters that the outputs depend on."""

    publish_rate: Annotated[float, Setting(0.0, 'Rate of the outputs; 0: once per joint state.',
                                           'Hz', 0.0, 10000.0, 0.01, changeable=True)]
    on_stale: str
    state_timeout: float
    missing_velocity: str
    friction: bool
    limit_efforts: bool
    friction_dead_band: float
    effort_convention: EffortConvention
    springs: bool
    marker_rate: Annotated[float, Setting(
        30.0, 'Largest rate of the markers; 0: no markers.', 'Hz', 0.0, 1000.0, changeable=True)]
    condition_limit: Annotated[float, Setting(
        2e3, "Condition number of the Jacobian, with lengths in units of the robot's reach, "
        'beyond which task inertias are damped.', '', 1.0, 1e7, changeable=True)]
    coriolis_factorization: Annotated[Factorization, Setting(
        'christoffel', 'Factorization of the Coriolis matrix: Christoffel symbols, or body twists '
        '(Garofalo et al.). C v is the same.', choices=('christoffel', 'body'), changeable=True)]
