# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Validate identification on recordings of real robots, of which a part is held out.

First the torques not explained by the identified robot, and the share of them within intervals of
90 %, for which each sixth of the recording is held out in turn; then the external torques
estimated by the momentum observer although nothing touched the robot: their mean must be zero, and
none may count as a contact by the deviations of the identified robot. Forces that are added to the
recorded efforts must.

The recordings cannot be redistributed. The given folder contains some of these:
`ur10_bags/ur10_exciting_trajectory.db3` from unisa-acg/inverse-dynamics-solver (commit 41e196de,
BSD-3-Clause), `panda_gaz/` from marcocognetti/FrankaEmikaPandaDynModel (commit 24d85ce4,
GPL-3.0), and `staubli_TX40/` and `tiago/` from the examples of thanhndv212/figaroh-examples
(commit c0b5c7f).

"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
import sys
from time import process_time
from typing import NamedTuple
import warnings

import numpy as np
import pinocchio
import rbd_ros
from rbd_ros import analysis, identification
from rbd_ros.control import MomentumObserver, with_contact_calibration
from rbd_ros.control.contact import (
    contact_deviation, contact_deviations, detectable_forces, external_deviations,
    largest_external)
from rbd_ros.identification import Recording
from rbd_ros.identification.report import share_within
from rbd_ros.identification.torque_uncertainty import FRICTION_SMOOTHING, model_torques

URDFS = Path(pinocchio.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'
UR10_URDF = URDFS / 'ur_description' / 'urdf' / 'ur10_robot.urdf'
PANDA_URDF = URDFS / 'panda_description' / 'urdf' / 'panda.urdf'


# Observer gain, 1/s
GAIN = 25.0
# Time constants until the observer has forgotten that a joint was at rest.
FORGOTTEN = 4.0
# s; errors this far apart are considered independent
INDEPENDENT = 1.0
# Pushes that are added to a recording: their duration, s; the distance of their beginnings, s;
# their size, of the smallest that is noticed.
PUSH, APART, SIZE = 0.3, 0.5, 1.5
# Parts of a recording that are held out in turn for the coverage of intervals.
HELD_OUT = 6
# A mean counts as zero below this many standard errors and this share of the torques.
DEVIATIONS, SHARE = 3.0, 0.05


class Result(NamedTuple):
    """
    The result of one kind of fit.

    Attributes
    ----------
    fitted, held_out : TorqueErrors
        On the part used for the fit, and on the other.
    urdf : TorqueErrors
        On the other part, with the parameters of the URDF.
    believable : bool
        The verdict.
    seconds : float
        CPU time of reduction and fit.

    """

    fitted: identification.TorqueErrors
    held_out: identification.TorqueErrors
    urdf: identification.TorqueErrors
    believable: bool
    seconds: float


class Residual(NamedTuple):
    """
    External torques estimated by an observer while each joint moves, although there are none.

    Attributes
    ----------
    mean, error : ndarray, shape (nv,)
        Mean over time, N m, and its standard error, from sums over intervals of `INDEPENDENT`.
    deviation : ndarray, shape (nv,)
        Standard deviation over time, N m.
    torque : ndarray, shape (nv,)
        RMS of the measured torques, N m.

    """

    mean: np.ndarray
    error: np.ndarray
    deviation: np.ndarray
    torque: np.ndarray

    @property
    def is_zero(self) -> np.ndarray:
        """Return for each joint whether the mean is zero, and known accurately enough."""
        size = np.abs(self.mean)
        return (size < DEVIATIONS * self.error) & (size < SHARE * self.torque)


def load(path: Path) -> rbd_ros.Model:
    """Return a robot with locked fingers, without the known warnings about its URDF."""
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
    """Return a Panda and its recording, which has no joint names: joints 1 to 7."""
    model = load(PANDA_URDF)
    time, *numbers = [np.loadtxt(data / 'panda_gaz' / f'exciting_traj_{name}.txt')
                      for name in ('time', 'positions', 'velocity', 'torques')]
    return model, Recording('panda', model.velocity_names, time,
                            *[x.reshape(-1, model.nv) for x in numbers])


def tx40(data: Path) -> tuple[rbd_ros.Model, Recording]:
    """Return a TX40, and a fifth of its recording, which is of motor positions and torques."""
    folder = data / 'staubli_TX40'
    efforts, positions = (
        np.loadtxt(folder / 'data' / f'{name}_data.csv', delimiter=',', skiprows=1)[::5]
        for name in ('curr', 'pos_read'))
    # Gears; the sixth motor turns with the fifth joint.
    gears = np.diag([32.0, 32.0, 45.0, -48.0, 45.0, 32.0])
    gears[5, 4] = 32.0
    joints = np.linalg.solve(gears, positions.T).T + np.pi / 2 * np.array([0, -1, 1, 0, 0, 0])
    model = load(folder / 'urdf' / 'tx40_mdh_modified.urdf')
    return model, Recording('TX40', model.velocity_names, 1e-3 * np.arange(len(joints)), joints,
                            None, efforts @ gears)


def tiago(data: Path) -> tuple[rbd_ros.Model, Recording]:
    """Return the arm of a TIAGo and its recording, in which the torso moves slowly."""
    folder = data / 'tiago' / 'data' / 'identification' / 'dynamic'
    positions, velocities, currents = (
        np.loadtxt(folder / f'tiago_{name}.csv', delimiter=',', skiprows=1)
        for name in ('position', 'velocity', 'effort'))
    names = tuple(f'arm_{k}_joint' for k in range(1, 8))
    model = load(data / 'tiago' / 'urdf' / 'tiago.urdf')
    model = rbd_ros.with_locked_joints(model, {
        name: 0.0 for name in model.velocity_names if name not in names})
    # N m/A, by the gears and motor constants of the source
    torques = np.array([13.6, 13.6, -8.7, -8.7, -20.6, -20.6, -20.6]) * currents[:, 2:]
    return model, Recording('TIAGo', names, positions[:, 0], positions[:, 2:], velocities[:, 2:],
                            torques)


# Robots, and the first share of their recording that is used for the fit.
CASES: dict[str, tuple[Callable[[Path], tuple[rbd_ros.Model, Recording]], float]] = {
    'UR10': (ur10, 0.5), 'Panda': (panda, 0.7), 'TX40': (tx40, 0.6), 'TIAGo': (tiago, 0.6)}
# What models are known to lack, so that their means need not be zero.
LACKING = {'TX40': 'the friction of the sixth motor, which turns with the fifth joint',
           'TIAGo': 'the motion of the torso; currents of the wrist are near their resolution'}


def evaluate(model: rbd_ros.Model, recording: Recording, share: float) -> Iterator[Result]:
    """Yield the results of free base parameters, then of a physically consistent robot."""
    middle = share * (recording.time[-1] - recording.time[0])
    used = identification.prepare(model, recording.part(stop=middle))
    # Nothing is fitted to the other part, not even the delay.
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


def known(model: rbd_ros.Model, *recordings: Recording
          ) -> tuple[rbd_ros.Model, list[identification.Samples]]:
    """Return the robot that recordings show, with its uncertainty, and their samples."""
    used = [identification.prepare(model, one) for one in recordings]
    part = identification.merge(*(identification.partial(model, one) for one in used))
    robot = identification.with_uncertainty(identification.fit(model, part), part, used)
    return robot, used


def coverage(model: rbd_ros.Model, recording: Recording) -> np.ndarray:
    """Return the share of torques within their intervals by joint, each part held out in turn."""
    ends = np.linspace(0.0, recording.time[-1] - recording.time[0], HELD_OUT + 1)
    found = []
    for start, stop in pairwise(ends):
        others = [recording.part(stop=start)] if start > 0.0 else []
        others += [recording.part(start=stop)] if stop < ends[-1] else []
        robot, used = known(model, *others)
        rest = identification.prepare(model, recording.part(start=start, stop=stop),
                                      delay=used[0].delay_removed, cutoff=used[0].cutoff)
        torques = model_torques(robot, rest, FRICTION_SMOOTHING * rest.threshold)[0]
        found.append((rest.tau - torques, analysis.torque_deviation(
            robot, rest.q, rest.v, rest.a, bandwidth=rest.cutoff), rest.usable))
    return share_within(*map(np.concatenate, zip(*found)))


def residuals(model: rbd_ros.Model, recording: Recording,
              share: float) -> tuple[Residual, Residual]:
    """Return those of the held-out part, for the robot of the URDF and the identified one."""
    middle = share * (recording.time[-1] - recording.time[0])
    used = identification.prepare(model, recording.part(stop=middle))
    found = identification.fit(model, identification.partial(model, used))
    rest = recording.part(start=middle).for_robot(model)
    return observe(model, rest, used.threshold), observe(found.model, rest, used.threshold)


class Contacts(NamedTuple):
    """
    Contacts on the other part, by the deviations of the identified robot.

    Attributes
    ----------
    largest : ndarray, shape (nv,)
        Largest external torque although nothing touches the robot, of the threshold.
    force : float
        Median of the pushes, N.
    pushes, noticed : int
        Number of pushes, and of those that are contacts.

    """

    largest: np.ndarray
    force: float
    pushes: int
    noticed: int


def contacts(model: rbd_ros.Model, recording: Recording, share: float) -> Contacts:
    """Return the contacts on the other part without and with pushes on the last link."""
    middle = share * (recording.time[-1] - recording.time[0])
    quiet = recording.part(stop=middle)
    robot = with_contact_calibration(known(model, quiet)[0], quiet)
    rest = recording.part(start=middle).for_robot(model)
    link, deviations = model.moving_joints[-1][0].child, contact_deviations(robot)
    J = rbd_ros.batch.world_jacobian(model, rest.position, link)
    smallest = detectable_forces(J, deviations * contact_deviation(
        robot, rest.position, rest.velocities()))
    efforts, sizes, pushed = rest.effort.copy(), [], []
    begins = np.arange(rest.time[0] + APART, rest.time[-1] - PUSH, APART)
    for k, begin in enumerate(begins):
        during = (rest.time >= begin) & (rest.time < begin + PUSH)
        # Along and against x, y and z of the root, in turn.
        axis, sign = k % 3, 1.0 if k % 2 else -1.0
        force = SIZE * np.max(smallest[during, axis])
        efforts[during] -= sign * force * J[during, 3 + axis]
        sizes.append(force)
        pushed.append(during)
    found = np.any(external_deviations(robot, replace(rest, effort=efforts)) > deviations, axis=1)
    return Contacts(largest_external(robot, rest) / deviations, float(np.median(sizes)),
                    len(begins), sum(bool(np.any(found[during])) for during in pushed))


def observe(model: rbd_ros.Model, recording: Recording, threshold: np.ndarray) -> Residual:
    """Return the estimated external torques where each joint is faster than a threshold."""
    observer = MomentumObserver(model, GAIN)
    time, effort = recording.time, recording.effort
    external = np.array([observer.update(*sample) for sample in zip(
        time, recording.position, recording.velocities(), effort)])
    # A joint at rest bears any torque up to its friction, which the observer forgets slowly.
    slow = np.abs(recording.velocities()) < threshold
    stood = np.maximum.accumulate(np.where(slow, time[:, None], time[0]))
    moves = time[:, None] - stood > FORGOTTEN / GAIN
    return Residual(*np.transpose([
        (*mean_and_error(time[m], r[m]), r[m].std(), np.sqrt(np.mean(tau ** 2)))
        for r, m, tau in zip(external.T, moves.T, effort.T)]))


def mean_and_error(time: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """Return the mean of values correlated in time, and its standard error."""
    stretch = ((time - time[0]) // INDEPENDENT).astype(int)
    sums, counts = np.bincount(stretch, x), np.bincount(stretch)
    n = np.count_nonzero(counts)
    spread = np.sum((sums - np.mean(x) * counts) ** 2)
    return float(np.mean(x)), float(np.sqrt(n / (n - 1) * spread) / len(x))


def numbers(x: np.ndarray) -> str:
    """Return numbers as columns of a table."""
    return ' '.join(f'{one:6.2f}' for one in x)


def main() -> int:
    """Print the tables; return 1 if a mean is not zero, or a contact is false or missed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('data', type=Path, help='folder with the recordings')
    data = parser.parse_args().data
    print('Residuals on the held-out part: of all torques, in percent of their size, and of each '
          'joint, N m\n')
    print(f'{"":26}{"all":>7}   joints')
    missing, robots = [], {}
    for name, (source, share) in CASES.items():
        try:
            model, recording = source(data)
        except (OSError, rbd_ros.RbdError) as error:
            missing.append(f'{name}: {error}')
            continue
        robots[name] = model, recording, share
        results = list(evaluate(model, recording, share))
        rows = [('URDF', results[0].urdf), ('free', results[0].held_out),
                ('consistent', results[1].held_out), ('consistent, fitted part',
                                                      results[1].fitted)]
        print(f'{name}, first {100 * share:.0f} % used')
        for label, errors in rows:
            print(f'  {label:24}{100 * errors.relative:6.2f} % {numbers(errors.rms)}')
        within = coverage(model, recording)
        print(f'  {"within 90 %, by sixths":24}{100 * np.mean(within):6.2f} % '
              f'{numbers(100 * within)}')
        print(f'  believable: {results[1].believable}; fitted in {results[1].seconds:.2f} s')
    print('\nExternal torques estimated by the momentum observer there, while each joint moves, '
          'N m\n')
    failed = False
    for name, case in robots.items():
        urdf, found = residuals(*case)
        print(name)
        for label, x in (('URDF: mean', urdf.mean), ('identified: mean', found.mean),
                         ('its standard error', found.error),
                         ('standard deviation', found.deviation),
                         ('torques, RMS', found.torque)):
            print(f'  {label:32} {numbers(x)}')
        failed |= not found.is_zero.all() and name not in LACKING
        print(f'  mean below {DEVIATIONS:g} standard errors and {100 * SHARE:g} % of the torques: '
              + ('yes' if found.is_zero.all() else 'no, joint ' + ', '.join(
                  str(k + 1) for k in np.flatnonzero(~found.is_zero))))
        if name in LACKING:
            print(f'  the model lacks {LACKING[name]}')
    print('\nContacts there, by the deviations of the identified robot: the largest external '
          'torque as a share of its threshold, although nothing touches the robot\n')
    for name, case in robots.items():
        found = contacts(*case)
        print(f'{name:12} {numbers(found.largest)}')
        print(f'  pushes of {SIZE:g} times the smallest force that is noticed, median '
              f'{found.force:.3g} N: {found.noticed} of {found.pushes} are contacts')
        failed |= bool(np.any(found.largest > 1.0)) or found.noticed < found.pushes
    for line in missing:
        print(line)
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
