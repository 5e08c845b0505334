# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Memory that calls of a workspace leave behind: none, however often they are made."""

from memory import memory_left
import numpy as np
import pytest
from rbd_ros import Workspace
from rbd_ros.analysis import Contact, Variation
from robots import random_state
from test_workspace_machine import DIRECTIONAL, LINK_METHODS, METHODS, ROBOTS

# Bytes: less than the smallest object for every hundredth call.
LEFT = 512


def calls():
    """Return calls of all methods, by name."""
    model = ROBOTS[0]
    workspace, (q, v, a) = Workspace(model), random_state(model, 3)
    given, mask = {'q': q, 'v': v, 'a': a}, np.arange(model.nv) % 2 == 0
    variation, link = Variation(v, a, v, a), model.moving_joints[-1][0].child

    def call(name, letters, *rest, **options):
        arguments = [given[letter] for letter in letters]
        return lambda: getattr(workspace, name)(*arguments, *rest, **options)

    found = {name: call(name, letters) for name, letters in METHODS.items()}
    found |= {name: call(name, letters, link) for name, letters in LINK_METHODS.items()}
    found |= {name: call(name, 'qvav', mask)
              for name in ('hybrid_dynamics', 'hybrid_dynamics_derivatives')}
    found |= {name: call(name, letters, *[mask] * name.startswith('hybrid'), variation)
              for name, letters in DIRECTIONAL.items()}
    motion = np.concatenate((q, v, a))
    found['inverse_dynamics_packed'] = lambda: workspace.inverse_dynamics_packed(motion)
    contacts = [Contact(link, 'surface')]
    found |= {name: call(name, 'qva', contacts)
              for name in ('constrained_dynamics', 'constrained_inverse_dynamics')}
    found['pushed'] = call('inverse_dynamics', 'qva', external_wrenches={link: np.ones(6)})
    return found


CALLS = calls()


@pytest.mark.parametrize('name', [
    pytest.param(name, marks=[pytest.mark.long] if k % 6 else []) for k, name in enumerate(CALLS)])
def test_calls_of_a_workspace_leave_nothing_behind(name):
    assert memory_left(CALLS[name]) < LEFT


def test_what_is_left_behind_is_found():
    kept = []
    assert memory_left(lambda: kept.append(0.5 * len(kept))) > 10 * LEFT
