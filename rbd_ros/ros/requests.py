# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The order of the joints in requests of the services, and that of the model."""

import numpy as np


class BadRequest(Exception):
    """A request that cannot be answered; the message says why and what to do."""


class Order:
    """
    The order of joints in a request against that of the model.

    Parameters
    ----------
    model : Model
        The robot.
    names : sequence of str
        All its joints in any order; empty for its own.

    Raises
    ------
    BadRequest
        If a name is unknown, missing or doubled.

    """

    def __init__(self, model, names):
        self._model = model
        self.names = list(names) or list(model.velocity_names)
        index = {name: k for k, name in enumerate(model.velocity_names)}
        unknown = [name for name in self.names if name not in index]
        if unknown:
            raise BadRequest(f"the robot has no joint '{unknown[0]}'; its joints are "
                             + ', '.join(model.velocity_names))
        missing = set(index) - set(self.names)
        if missing or len(self.names) != len(index):
            raise BadRequest('name every joint once; missing: '
                             + (', '.join(sorted(missing)) or 'none'))
        self._target = np.array([index[name] for name in self.names], int)

    def read(self, label, values):
        """Return the values of a request, one for each velocity, in the order of the model."""
        if len(values) != len(self.names):
            raise BadRequest(f'{label} has {len(values)} entries, expected {len(self.names)}: '
                             + ', '.join(self.names))
        result = np.zeros(len(values), bool if label == 'acceleration_prescribed' else float)
        result[self._target] = values
        return result

    def read_position(self, values):
        """
        Return the position of a request in the order of the model.

        Where positions are not as many as velocities, they are in that order already.

        """
        if self._model.nq == self._model.nv:
            return self.read('position', values)
        if len(values) != self._model.nq:
            raise BadRequest(f'position has {len(values)} entries, expected {self._model.nq}: '
                             + ', '.join(self._model.position_names))
        return np.array(values)

    def arrange(self, values):
        """Return rows of the model, one for each velocity, in the order of the request."""
        return np.asarray(values)[self._target]

    def write(self, values):
        """Return values of the model in the order of the request, as a list."""
        return self.arrange(values).tolist()
