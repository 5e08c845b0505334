# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time the library against Pinocchio, both called from Python, interleaved in one process.

All terms stands for M, C, g, C v, the centre of mass and its Jacobian: one call here, four calls
there (crba, computeCoriolisMatrix, computeGeneralizedGravity, jacobianCenterOfMass).

"""

from functools import partial
import pathlib
from time import perf_counter
import warnings

import numpy as np
import pinocchio
from rbd_ros import load_urdf, ModelWarning, Workspace
from rbd_ros.ros.share import share

ROBOTS = pathlib.Path(pinocchio.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'
URDFS = (ROBOTS / 'ur_description/urdf/ur5_robot.urdf', share('urdf', 'demo_arm.urdf'),
         ROBOTS / 'talos_data/robots/talos_reduced.urdf')
ROUNDS, CALLS = 31, 1000


def interleave(ours, theirs):
    """Return the medians of two functions' times, us, and quartiles of their ratio."""
    times = np.empty((ROUNDS, 2))
    for row in times:
        for column, function in enumerate((ours, theirs)):
            start = perf_counter()
            for _ in range(CALLS):
                function()
            row[column] = (perf_counter() - start) / CALLS * 1e6
    return (*np.median(times, axis=0), *np.percentile(times[:, 0] / times[:, 1], (25, 50, 75)))


def main():
    """Print a table."""
    print(f'{"robot":12s} {"joints":>6s} {"function":18s} {"ours us":>8s} {"pin us":>8s} '
          f'{"ratio":>6s}  quartiles')
    for urdf in URDFS:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            model = load_urdf(urdf)
        pin = pinocchio.buildModelFromUrdf(str(urdf))
        data, workspace = pin.createData(), Workspace(model)
        # The numbers play no part in the times, so neither does the order of the joints.
        q, v, a = np.random.default_rng(0).normal(size=(3, model.nv))

        def four_calls(pin=pin, data=data, q=q, v=v):
            pinocchio.crba(pin, data, q)
            pinocchio.computeCoriolisMatrix(pin, data, q, v)
            pinocchio.computeGeneralizedGravity(pin, data, q)
            pinocchio.jacobianCenterOfMass(pin, data, q)

        for name, ours, theirs in (
                ('all terms', partial(workspace.all_terms, q, v), four_calls),
                ('inverse dynamics', partial(workspace.inverse_dynamics, q, v, a),
                 partial(pinocchio.rnea, pin, data, q, v, a)),
                ('forward dynamics', partial(workspace.forward_dynamics, q, v, a),
                 partial(pinocchio.aba, pin, data, q, v, a))):
            ours()
            t_ours, t_theirs, low, middle, high = interleave(ours, theirs)
            print(f'{model.name:12s} {model.nv:6d} {name:18s} {t_ours:8.2f} {t_theirs:8.2f} '
                  f'{middle:6.2f}  {low:.2f} ... {high:.2f}', flush=True)


if __name__ == '__main__':
    main()
