# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Runs a hypothesis machine: the same runs each time, and none that is shortened."""

from hypothesis import HealthCheck, Phase, settings


def run_machine(machine, runs, steps):
    """Run a machine several times, with up to so many steps each."""
    machine.TestCase.settings = settings(
        max_examples=runs, stateful_step_count=steps, derandomize=True, deadline=None,
        database=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    machine.TestCase('runTest').runTest()
