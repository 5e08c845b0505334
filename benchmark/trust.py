# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How far to trust what is identified: recordings of real robots, of which a part was held out.

The recordings are not ours to ship. The folder that is named holds, or some of these:
`ur10_bags/ur10_exciting_trajectory.db3` from unisa-acg/inverse-dynamics-solver (commit 41e196de,
BSD-3-Clause), and `panda_gaz/` from marcocognetti/FrankaEmikaPandaDynModel (commit 24d85ce4,
GPL-3.0).

"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import NamedTuple
import warnings

import numpy as np
import pinocchio
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification import Recording

URDFS = Path(pinocchio.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'
UR10_URDF = URDFS / 'ur_description' / 'urdf' / 'ur10_robot.urdf'
PANDA_URDF = URDFS / 'panda_description' / 'urdf' / 'panda.urdf'


class Result(NamedTuple):
    """
    What one way of fitting reaches.

    Attributes
    ----------
    fitted, held_out : TorqueErrors
        On the part that was used, and on the other.
    urdf : TorqueErrors
        On the other part, with the parameters of the URDF.
    believable : bool
        What the verdict says.
    seconds : float
        CPU time of reduction and fit.

    """

    fitted: identification.TorqueErrors
    held_out: identification.TorqueErrors
    urdf: identification.TorqueErrors
    believable: bool
    seconds: float


def load(path: Path) -> rbd_ros.Model:
    """Return a robot whose oddities are known, its fingers locked."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        model = rbd_ros.load_urdf(path)
    return rbd_ros.with_locked_joints(model, {name: 0.0 for name in model.velocity_names
                                              if 'finger' in name})


def ur10(data: Path) -> tuple[rbd_ros.Model, Recording]:
    """Return a UR10 and its recording."""
    return load(UR10_URDF), identification.read_recording(
        data / 'ur10_bags' / 'ur10_exciting_trajectory.db3')


def panda(data: Path) -> tuple[rbd_ros.Model, Recording]:
    """Return a Panda and its recording, which has no names: joints 1 to 7."""
    model = load(PANDA_URDF)
    time, *numbers = [np.loadtxt(data / 'panda_gaz' / f'exciting_traj_{name}.txt')
                      for name in ('time', 'positions', 'velocity', 'torques')]
    return model, Recording('panda', model.velocity_names, time,
                            *[x.reshape(-1, model.nv) for x in numbers])


# Robots, and the share of their recording, from its beginning on, that is used.
CASES: dict[str, tuple[Callable[[Path], tuple[rbd_ros.Model, Recording]], float]] = {
    'UR10': (ur10, 0.5), 'Panda': (panda, 0.7)}


def evaluate(model: rbd_ros.Model, recording: Recording, share: float) -> Iterator[Result]:
    """Return what is reached with free base parameters, then with a robot that can exist."""
    middle = share * (recording.time[-1] - recording.time[0])
    used = identification.prepare(model, recording.part(stop=middle))
    # Nothing is fitted to the other part, the delay neither.
    other = identification.prepare(model, recording.part(start=middle),
                                   delay=used.delay_removed, cutoff=used.cutoff)
    rest = identification.partial(model, other)
    for consistent in (False, True):
        start = process_time()
        part = identification.partial(model, used)
        found = identification.fit(model, part, consistent=consistent)
        seconds = process_time() - start
        verdict = identification.verdict(model, part, found, used)
        yield Result(
            *(identification.torque_errors(one, found.values) for one in (part, rest)),
            identification.torque_errors(rest, found.parameters.values), verdict.believable,
            seconds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path, help='folder with the recordings')
    data = parser.parse_args().data
    print('Residuals on the part that was held out: of all torques, in percent of their size, and '
          'of each joint, N m\n')
    print(f'{"":26}{"all":>7}   joints')
    missing = []
    for name, (source, share) in CASES.items():
        try:
            model, recording = source(data)
        except (OSError, rbd_ros.RbdError) as error:
            missing.append(f'{name}: {error}')
            continue
        results = list(evaluate(model, recording, share))
        rows = [('URDF', results[0].urdf), ('free', results[0].held_out),
                ('consistent', results[1].held_out), ('consistent, on its part',
                                                      results[1].fitted)]
        print(f'{name}, first {100 * share:.0f} % used')
        for label, errors in rows:
            joints = ' '.join(f'{x:6.2f}' for x in errors.rms)
            print(f'  {label:24}{100 * errors.relative:6.2f} % {joints}')
        print(f'  believable: {results[1].believable}; fitted in {results[1].seconds:.2f} s')
    for line in missing:
        print(line)


if __name__ == '__main__':
    main()
