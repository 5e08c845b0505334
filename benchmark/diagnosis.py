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


PRINTED = 500   # Cases after which the table is printed.
ROBOTS = 6      # Number of the robots in test/subjects/planted.py.


def outcome(task):
    """Return what the diagnosis of a case names: (planted, found, inside)."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'test/subjects'))
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


def tasks(kinds, cases, pairs, clean, seed):
    """Yield the cases, of all kinds in turn: what is printed in between is a sample."""
    rng = np.random.default_rng(seed)
    for k in range(max(cases, pairs, clean)):
        two = tuple(sorted(rng.choice(PAIRED, 2, replace=False)))
        for one in (*(((kind,) for kind in kinds) if k < cases else ()),
                    *((two,) if k < pairs else ()), *(((),) if k < clean else ())):
            yield one, k % ROBOTS, seed + k


def main():
    """Print the table now and then, and at last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cases', type=int, default=300, help='of each kind')
    parser.add_argument('--pairs', type=int, default=300)
    parser.add_argument('--clean', type=int, default=100)
    parser.add_argument('--kinds', nargs='*', default=list(HYPOTHESES))
    parser.add_argument('--seed', type=int, default=0, help='of the first case of each kind')
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--failures', action='store_true', help='print the cases that failed')
    options = parser.parse_args()
    table = defaultdict(list)
    work = list(tasks(options.kinds, options.cases, options.pairs, options.clean, options.seed))
    with get_context('spawn').Pool(options.workers) as pool:
        for count, (kinds, name, seed, ranks, inside, found) in enumerate(
                pool.imap(outcome, work, 4), 1):
            label = kinds[0] if len(kinds) == 1 else 'pairs' if kinds else 'clean'
            good = (not found if label == 'clean' else ranks == [0] if len(kinds) == 1
                    else all(rank is not None and rank < 3 for rank in ranks))
            table[label].append((good, inside if len(kinds) == 1 else None))
            if options.failures and not (good and inside is not False):
                print('failed:', *kinds, name, seed, ranks, inside, found, flush=True)
            if count % PRINTED == 0 or count == len(work):
                print(f'\n{"kind":20s} cases  named  value inside',
                      *(row(*one) for one in table.items()), sep='\n', flush=True)


def row(label, cases):
    """Return a line of the table."""
    values = [inside for _, inside in cases if inside is not None]
    share = f'{100.0 * np.mean(values):5.1f} %' if values else ''
    return f'{label:20s} {len(cases):5d} {100.0 * np.mean([x for x, _ in cases]):5.1f} % {share}'


if __name__ == '__main__':
    main()
