# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Plant mistakes in recordings of simulated robots, and count how often `diagnose` names them.

Prints, for each kind, the share of the cases in which it is the first finding, at the right place,
and in which its value lies in its interval; then the share of pairs of kinds that are both among
the first three findings, and of clean recordings without findings.

"""

import argparse
from collections import defaultdict
from multiprocessing import get_context
from pathlib import Path
import sys

import numpy as np
from rbd_ros.identification import diagnose
from rbd_ros.identification.diagnosis.hypotheses import HYPOTHESES

# Kinds that are planted two at a time: what they change adds up.
PAIRED = ('sign', 'gain', 'common_gain', 'gravity_direction', 'payload', 'link_mass',
          'zero_offset', 'torque_offset', 'friction', 'rotor', 'spring', 'delay')


ROBOTS = 4      # Number of the robots in test/planted.py.


def outcome(task):
    """Return what the diagnosis of a case names: (planted, found, inside)."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test'))
    from planted import Case, ROBOTS
    sys.path.pop(0)
    kinds, number, seed = task
    name = ROBOTS[number]
    case = Case(name, np.random.default_rng((seed, number, *map(
        list(HYPOTHESES).index, kinds))), kinds)
    for kind in kinds:
        case.plant(kind)
    found = diagnose(case.described, case.recording()).findings
    ranks, inside = [], None
    for kind, (place, value) in case.planted.items():
        rank = next((k for k, one in enumerate(found) if one.kind == kind and place in (
            '', one.place, *one.joints[:1])), None)
        ranks.append(rank)
        if rank is not None and value is not None and found[rank].deviation is not None:
            inside = abs(found[rank].value - value) <= 2.0 * found[rank].deviation
    return kinds, name, seed, ranks, inside, [(one.kind, one.place) for one in found]


def tasks(kinds, cases, pairs, clean_ones):
    """Yield the cases."""
    for kind in kinds:
        for k in range(cases):
            yield (kind,), k % ROBOTS, k
    rng = np.random.default_rng(0)
    for k in range(pairs):
        yield tuple(sorted(rng.choice(PAIRED, 2, replace=False))), k % ROBOTS, k
    for k in range(clean_ones):
        yield (), k % ROBOTS, k


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cases', type=int, default=300, help='of each kind')
    parser.add_argument('--pairs', type=int, default=300)
    parser.add_argument('--clean', type=int, default=100)
    parser.add_argument('--kinds', nargs='*', default=list(HYPOTHESES))
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--failures', action='store_true', help='print the cases that failed')
    options = parser.parse_args()
    table = defaultdict(list)
    work = list(tasks(options.kinds, options.cases, options.pairs, options.clean))
    print(f'{"kind":20s} cases  named  value inside', flush=True)
    with get_context('spawn').Pool(options.workers) as pool:
        for kinds, name, seed, ranks, inside, found in pool.imap(outcome, work, 4):
            label = kinds[0] if len(kinds) == 1 else 'pairs' if kinds else 'clean'
            if table and label not in table:
                print(row(*list(table.items())[-1]), flush=True)
            good = (not found if label == 'clean' else ranks == [0] if len(kinds) == 1
                    else all(rank is not None and rank < 3 for rank in ranks))
            table[label].append((good, inside if len(kinds) == 1 else None))
            if options.failures and not (good and inside is not False):
                print('failed:', *kinds, name, seed, ranks, inside, found, flush=True)
    print(row(*list(table.items())[-1]))


def row(label, cases):
    """Return a line of the table."""
    values = [inside for _, inside in cases if inside is not None]
    share = f'{100.0 * np.mean(values):5.1f} %' if values else ''
    return f'{label:20s} {len(cases):5d} {100.0 * np.mean([x for x, _ in cases]):5.1f} % {share}'


if __name__ == '__main__':
    main()
