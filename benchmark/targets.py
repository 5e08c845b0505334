# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The targets of the benchmark, and whether they are met."""

from statistics import median

import report_code
from tables import spread, verdict

# Largest ratio of our time to Pinocchio's, by function and column of the table of targets.
TARGETS = {
    'all terms': {'small': 0.20, 'large': 0.15, 'floating': 0.18},
    'inverse dynamics': {'small': 0.35, 'large': 0.30, 'floating': 0.35},
    'inverse dynamics, packed': {'small': 0.35},
    'forward dynamics': {'small': 0.45, 'large': 0.35, 'floating': 0.40},
    'derivatives of inverse dynamics': {'small': 0.80, 'large': 0.80, 'floating': 0.90},
    'derivatives of forward dynamics': {'small': 0.80, 'large': 0.80, 'floating': 0.40},
    'torque regressor': {'small': 0.60, 'large': 0.60, 'floating': 0.60},
}
# Largest ratio of batches to Pinocchio's parallel call, and ns per state, both with one thread.
BATCH_TARGETS = {'small': 0.03, 'large': 0.04}
BATCH_NS = {'inverse dynamics': {'small': 35, 'large': 200, 'floating': 260},
            'forward dynamics': {'small': 80, 'large': 600, 'floating': 800},
            'all terms': {'small': 180, 'large': 2500, 'floating': 3200},
            'derivatives of inverse dynamics': {'small': 300, 'large': 5000, 'floating': 7000},
            'torque regressor': {'small': 600, 'large': 12000, 'floating': 16000}}
SIZES = {'small': '6-7 joints', 'large': '25-32 joints', 'floating': 'floating base'}
# The node at 1 kHz with 32 joints and the events executor.
NODE = {'node': 'rbd_ros', 'joints': 32, 'executor': 'events', 'rate': 1000}
# Limits of the dynamics node, and of the torque controller in any mode: quantity, its key, limit
# and format. Growth is less than the smallest Python object.
NODE_LIMITS = (('states lost', 'lost', 0, 'd'), ('p99, ms', 'p99 ms', 1.0, '.2f'),
               ('CPU, % of a core', 'CPU %', 40.0, '.0f'),
               ('growth of memory, bytes a state', 'growth bytes a state', 16.0, '.1f'))
LAW_LIMITS = ('states lost', 'lost', 0, 'd'), ('p99, ms', 'p99 ms', 1.5, '.2f')
# s, from the start of the node's process to its first output, with and without cached kernels.
WARM, COLD = 1.5, 12.0
# s, until its first output and until all topics flow, without numba and without cached code.
COMPILED = {'first': 3.0, 'all': 15.0}
# µs, per call, step, sample or state of a public function with 32 joints
PUBLIC = 1000.0
# Forward dynamics with mimics, µs; new results to existing arrays; CPU time of the node to that of
# a node that only copies; loading a robot of seven joints, µs; new processes, s.
MIMICS_US, NEW_TO_OUT, TO_COPYING, LOADING_US = 60.0, 1.25, 1.4, 3000.0
STARTS = {'first torque': 0.5, 'rbd_ros check': 0.4, 'rbd_ros --help': 0.4}


def targets(found):
    """Return a row for every target: quantity, limit, measured value, verdict."""
    rows = []
    ratios = {}
    for row in found['library']['rows'] if 'library' in found else ():
        if 'Pinocchio' in row['ratio']:
            ratios.setdefault((row['function'], row['size']), []).append(
                (row['ratio']['Pinocchio'][1], row['robot'], row['ratio']['Pinocchio']))
    for function, by_size in TARGETS.items():
        for size, limit in by_size.items():
            if (function, size) in ratios:
                middle, robot, three = max(ratios[function, size])
                rows.append((f'{function}, {SIZES[size]}', f'{limit:.2f}',
                             f'{robot}: {spread(three)}', verdict(middle <= limit)))
    public = [(row['us'], f'{row["function"]}, a {row["per"]}')
              for row in (found['functions']['rows'] if 'functions' in found else ())
              if row['joints'] == 32 and row['per'] != 'robot']
    if public:
        rows.append((f'{len(public)} public functions, 32 joints, the slowest, µs',
                     f'{PUBLIC:.0f}', f'{max(public)[1]}: {max(public)[0]:.0f}',
                     verdict(max(public)[0] <= PUBLIC)))
    for row in found['batch']['rows'] if 'batch' in found else ():
        if row['threads'] > 1:
            continue
        name = f'batch, {row["function"]}, {SIZES[row["size"]]}'
        if row['function'] == 'inverse dynamics' and row['size'] in BATCH_TARGETS:
            limit, three = BATCH_TARGETS[row['size']], row['ratio']['Pinocchio']
            rows.append((name, f'{limit:.2f}', f'{row["robot"]}: {spread(three)}',
                         verdict(three[1] <= limit)))
        if row['function'] in BATCH_NS:
            limit = BATCH_NS[row['function']][row['size']]
            rows.append((name + ', ns a state', limit, f'{row["robot"]}: {row["ns"]["out"]:.0f}',
                         verdict(row['ns']['out'] <= limit)))
    for row in found['node']['rows'] if 'node' in found else ():
        limits = NODE_LIMITS if row['node'] == 'rbd_ros' else LAW_LIMITS
        if row['node'] == 'copying' or not (NODE | {'node': row['node']}).items() <= row.items():
            continue
        mode = '' if row['node'] == 'rbd_ros' else f', {row["node"]}'
        name = f'node, 1 kHz, 32 joints, events, all topics{mode}: '
        if 'failed' in row:
            rows.append((name + 'answers', '', row['failed'], verdict(False)))
            continue
        rows += [(f'{name}{what}', limit, f'{row[key]:{form}}', verdict(row[key] <= limit))
                 for what, key, limit, form in limits]
    if 'start' in found:
        rows += [(f'node, start of the process to first output, {name}, s', limit,
                  f'{t:.{digits}f}', verdict(t <= limit)) for name, t, limit, digits in (
                      ('kernels cached, median', median(found['start']['warm']), WARM, 2),
                      ('no kernels cached', found['start']['cold'], COLD, 1))]
        rows += [(f'node, start of the process to {what}, {joints} joints, without numba and '
                  'cached code, s', COMPILED[key], f'{one[key]:.1f}',
                  verdict(one[key] <= COMPILED[key]))
                 for joints, one in found['start'].get('compiled', {}).items()
                 for key, what in (('first', 'first output'), ('all', 'all topics'))]
    return rows + felt(found) + report_code.targets(found)


def felt(found):
    """Return the rows of targets for what users wait for."""
    rows = []

    def at_most(name, limit, value, what='', form='.2f'):
        rows.append((name, f'{limit:g}', f'{what}{value:{form}}', verdict(value <= limit)))
    if 'library' in found:
        us, robot = max((row['us']['forward dynamics'], row['robot'])
                        for row in found['library']['mimics'])
        at_most('forward dynamics with mimics, µs', MIMICS_US, us, f'{robot}: ')
    if 'batch' in found:
        ratio, which = max((row['ns']['rbd_ros'] / row['ns']['out'],
                            f'{row["robot"]}, {row["function"]}, threads: {row["threads"]}')
                           for row in found['batch']['rows'])
        at_most('batch, new results to existing arrays', NEW_TO_OUT, ratio, f'{which}: ')
    if 'functions' in found:
        us, = [row['us'] for row in found['functions']['rows']
               if row['function'] == 'load_urdf' and row['joints'] == 7]
        at_most('load_urdf, 7 joints, µs', LOADING_US, us, form='.0f')
    if 'node' in found:
        ours, copying = ([row['CPU %'] for row in found['node']['rows']
                          if (NODE | {'node': which}).items() <= row.items()]
                         for which in ('rbd_ros', 'copying'))
        if ours and copying:
            at_most('node, 1 kHz, 32 joints, all topics: CPU to that of copying only', TO_COPYING,
                    ours[0] / copying[0])
    if 'start' in found:
        for name, limit in STARTS.items():
            at_most(f'{name}, new process, s', limit, found['start']['library'][name])
    return rows
