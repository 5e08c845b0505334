# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Write RESULTS.md and its plots from the measurements of the other scripts."""

from statistics import median

import in_short
import plots
import report_code
from tables import spread, table
from targets import targets
from timing import HERE, load, options

# Reported by Garofalo et al. for a humanoid with 25 joints.
PUBLISHED_US, PUBLISHED_RATES = 244.0, 0.71


def head(found):
    """Return where and when the parts were measured."""
    parts = list(found.values())
    lines = ['# Benchmark', '', 'Written by `make bench`; do not edit by hand.', '',
             *table(('machine', ''), parts[-1]['machine'].items())]
    lines += table(('part', 'measured', 's', 'load of the machine (1, 5, 15 min)',
                    'rounds left out', 'commit'),
                   [(name, part['date'], f'{part["took"]:.0f}',
                     ', '.join(f'{x:.1f}' for x in part['load']),
                     f'{part["left out"]} of {part["rounds"]}' if part['rounds'] else '-',
                     part['machine']['commit'])
                    for name, part in found.items()])
    lines += ['Rounds in which plain Python took a fifth longer than at its best are left out: '
              'other processes disturbed them. All parts took '
              f'{sum(part["took"] for part in parts) / 60.0:.0f} minutes.', '']
    return lines


def library(results):
    """Return the tables of single calls."""
    lines = ['## Single calls from Python', '',
             'Medians, µs. The libraries take turns in one process on one core; ratios are taken '
             'per round, with quartiles. The outputs were checked to agree; *differs* is the '
             'largest difference, as a share of the largest entry. The calls of Pinocchio are in '
             '`with_pinocchio.py`: for all terms crba, computeCoriolisMatrix, '
             'computeGeneralizedGravity and jacobianCenterOfMass. Those of MuJoCo, as few as '
             'possible, are in `with_mujoco.py`; its all terms exclude C, like those of Drake '
             '(`with_drake.py`), which is included if installed (`pip install drake`). A dash '
             'means that there is no such function. The humanoid is Talos without head, grippers, '
             'wrists and one torso joint.', '', '![ratios](ratios.png)', '']
    rows = results['rows']
    for robot in dict.fromkeys(row['robot'] for row in rows):
        mine = [row for row in rows if row['robot'] == robot]
        others = list(dict.fromkeys(name for row in mine for name in row['ratio']))
        lines += [f'### {robot}: {mine[0]["joints"]} velocities', '']
        lines += table(
            ('function', 'rbd_ros', *others, *(f'to {name}' for name in others), 'differs'),
            [(row['function'], f'{row["us"]["rbd_ros"]:.2f}',
              *(f'{row["us"][name]:.2f}' if name in row['us'] else '-' for name in others),
              *(spread(row['ratio'][name]) if name in row['ratio'] else '-' for name in others),
              f'{row["error"]:.0e}' if row['ratio'] else '-') for row in mine])
    return lines + with_mimics(results) + published(results)


def with_mimics(results):
    """Return the table of robots with mimic joints."""
    names = ('forward dynamics', 'Pinocchio', 'derivatives', 'Pinocchio, derivatives', 'batch',
             'batch, derivatives')
    return ['### Forward dynamics with mimic joints', '',
            'Median µs of a call, and per state of a batch on one thread. Pinocchio: aba and '
            'computeABADerivatives for all joints, which leave out that these are coupled. Our '
            'accelerations are checked with its rnea.', '',
            *table(('robot', 'joints', 'velocities', *names),
                   [(row['robot'], row['joints'], row['velocities'],
                     *(f'{row["us"][name]:.2f}' for name in names))
                    for row in results['mimics']])]


def single_calls(results):
    """Return the table of the parts of a call."""
    names = {'method': '`Workspace.inverse_dynamics`', 'kernel': 'its kernel, called directly',
             'recursion': 'the recursion, called from compiled code',
             'five arrays': 'a kernel of the same five arrays that does nothing',
             'unchecked': 'the same, without a check of the types',
             'three arrays': 'of three arrays, as with q, v and a in one',
             'no argument': 'without arguments',
             'Python method': 'a method in Python that does nothing',
             'Pinocchio': "Pinocchio's rnea"}
    robots = results['robots'].values()
    return ['### What a call costs', '',
            'Inverse dynamics, median ns (`single_calls.py`): the recursion, the time numba takes '
            'to check and unpack five arrays, and a method in Python. Types must be checked, '
            'because a compiled form reads memory of another type or layout unnoticed.', '',
            *table(('ns', *results['robots']), [
                *((words, *(f'{one["ns"][name]:,.0f}' for one in robots))
                  for name, words in names.items()),
                ('to Pinocchio', *(f'{one["ratio"]:.2f}' for one in robots)),
                ('to Pinocchio, if the recursion took no time',
                 *(f'{(one["ns"]["method"] - one["ns"]["recursion"]) / one["ns"]["Pinocchio"]:.2f}'
                   for one in robots))])]


def functions(results):
    """Return the table of public functions."""
    rows = {}
    for row in results['rows']:
        rows.setdefault((row['function'], row['per']), []).append(f'{row["us"]:.2f}')
    robots = list(dict.fromkeys(f'{row["robot"]}, {row["joints"]} joints'
                                for row in results['rows']))
    return ['## Every public function', '',
            'Median µs of plain calls from Python, without the textbook; calls of a workspace are '
            'above. Functions of samples and states take 200 and 1,024 of them on one thread, and '
            'the time is per sample or state; functions that create or analyse a robot are timed '
            'per robot.',
            '', *table(('rbd_ros.', 'time of a', *robots),
                       [(name, per, *times) for (name, per), times in rows.items()])]


def published(results):
    """Return a comparison with published times."""
    row = next(row for row in results['rows']
               if (row['robot'], row['function']) == ('Humanoid', 'all terms'))
    return ['## Published times', '',
            f'Garofalo et al. report {PUBLISHED_US:.0f} µs for M, C and g of a humanoid with 25 '
            f'joints, and for the matrices with their time derivatives {PUBLISHED_RATES} of twice '
            'the time for the matrices.', '',
            *table(('25 joints: M, C, g, C v, CoM, J_CoM', 'µs'),
                   [('Garofalo et al., M, C and g', f'{PUBLISHED_US:.0f}'),
                    *((name, f'{us:.2f}') for name, us in row['us'].items()
                      if name in ('rbd_ros', 'Pinocchio'))]),
            *table(('M, C, g, dC/dt and dg/dt (dM/dt = C + C^T) as a share of twice all terms',
                    'share'), [('Garofalo et al., 25 joints', PUBLISHED_RATES),
                               *((name, spread(three))
                                 for name, three in results['rates'].items())])]


def growth(results):
    """Return the table of exponents."""
    return ['## Growth with the number of joints', '',
            'Times of the fastest round as a power of n, fitted from '
            f'{results["fitted from"]} to {results["sizes"][-1]:,} joints; the expected exponent '
            'is that of the number of steps (`growth.py`). On trees, the derivatives of forward '
            'dynamics grow faster up to 1,000 joints, where their 23 MiB, twice, outgrow the '
            'caches: at 1,400 joints, a step takes as long as at 1,000.', '',
            '![growth](growth.png)', '',
            *table(('function', 'chain', 'expected', 'tree', 'expected',
                    f'chain of {results["sizes"][-1]:,}, µs', f'tree of {results["sizes"][-1]:,}, '
                    'µs'),
                   [(function, f'{chain["exponent"]:.2f}', f'{chain["expected"]:.2f}',
                     f'{tree["exponent"]:.2f}', f'{tree["expected"]:.2f}',
                     f'{chain["us"][-1]:,.0f}', f'{tree["us"][-1]:,.0f}')
                    for (function, chain), tree in zip(results['shapes']['chain'].items(),
                                                       results['shapes']['tree'].values())])]


def batch(results):
    """Return the tables of batches."""
    lines = ['## Many states at once', '',
             'Median ns per state. *Out*: results are written to existing arrays, as by Pinocchio '
             'and MuJoCo; otherwise to new ones, once those of the last call are dropped. *Copy*: '
             'copying as many bytes as the function writes to an existing array; if that takes as '
             'long, memory is the limit. *In turns*: *out* between the other libraries, which '
             'leave foreign data in the caches; the ratio is that of *in turns* to Pinocchio. '
             'Pinocchio: its parallel calls. MuJoCo: rollouts of one step, including the '
             'integration. frax is included if installed.', '', '![batch](batch.png)', '']
    for robot in dict.fromkeys(row['robot'] for row in results['rows']):
        mine = [row for row in results['rows'] if row['robot'] == robot]
        others = list(dict.fromkeys(name for row in mine for name in row['ratio']))
        names = ['rbd_ros', 'out', 'copy', 'in turns', *others]
        lines += [f'### {robot}: {mine[0]["joints"]} velocities', '', *table(
            ('function', 'threads', 'bytes', *names, 'to Pinocchio'),
            [(row['function'], row['threads'], f'{row["bytes"]:,}',
              *(f'{row["ns"][name]:,.0f}' if name in row['ns'] else '-' for name in names),
              spread(row['ratio']['Pinocchio']) if row['ratio'] else '-') for row in mine])]
    return lines


def batch_sizes(results):
    """Return the table of batch sizes."""
    names = list(dict.fromkeys(name for row in results['rows'] for name in row['ns']))
    memory = ' and '.join(f'{size / 2 ** 20:.1f} MiB for {int(count):,} states'
                          for count, size in results['memory'].items())
    return ['## Few and many states', '',
            f'Inverse dynamics of the {results["robot"]}, median ns per state, to new arrays '
            'except for Pinocchio; loops of plain calls and of workspace calls are timed up to a '
            'thousand states. Peak memory of a call in addition to arguments and results: '
            f'{memory}.', '',
            *table(('states', 'threads', *names),
                   [(f'{row["states"]:,}', row['threads'],
                     *(f'{row["ns"][name]:,.0f}' if name in row['ns'] else '-'
                       for name in names)) for row in results['rows']])]


def closed_loops(results):
    """Return the table of robots with closed loops."""
    return ['## Closed loops', '',
            'µs, the shortest of many, next to the constrained dynamics of Pinocchio; inverse '
            'dynamics next to forward dynamics of the same robot without its loops, '
            'and one state of many, by `batch`, next to a call of a `Workspace` '
            '(`closed_loops.py`).', '',
            *table(('robot, function', 'rbd_ros', '', '', 'ratio'), [
                (name, f'{times["rbd_ros"]:.2f}', other, f'{us:.2f}',
                 f'{times["rbd_ros"] / us:.2f}')
                for name, times in results['rows'].items()
                for other, us in times.items() if other != 'rbd_ros'])]


def limit(results):
    """Return the limit of batched inverse dynamics."""
    return ['## The limit of this machine', '',
            'Inverse dynamics on one thread, ns per state: in C (`limit.c`), with states already '
            'in the interleaved layout that a batch has to produce first; and its arithmetic '
            'alone, at the rate of fused multiply-adds without memory access.', '',
            *table(('robot', 'flops', 'C', 'arithmetic alone'),
                   [(robot, f'{one["flops"]:,.0f}', f'{one["ns"]:.1f}', f'{one["floor"]:.1f}')
                    for robot, one in results['robots'].items()])]


def node(results):
    """Return the table of the node."""
    keys = {'pace': '.2f', 'sent': 'd', 'lost': 'd', 'p50 ms': '.2f', 'p99 ms': '.2f',
            'p99.9 ms': '.2f', 'CPU %': '.0f', 'growth KiB': '.0f'}
    rows = []
    for row in results['rows']:
        name = f'{row["joints"]} joints, {row["executor"]}, {row["rate"]} Hz'
        if row['node'] != 'rbd_ros':
            name += ', *copying only*' if row['node'] == 'copying' else f", {row['node']}"
        rows.append((name, row['failed'], *('-' for _ in list(keys)[1:])) if 'failed' in row else
                    (name, *(f'{row[key]:{form}}' for key, form in keys.items())))
    return ['## The node', '',
            f'{results["seconds"]:.0f} s each; every topic has a subscriber. Latency is measured '
            'from the stamp of a joint state to the arrival of ~/dynamics, the last output, in '
            'another process; publisher and subscriber are Python processes on the same cores. '
            'The publisher skips cycles missed because of a pause of the machine. Growth of '
            'memory is counted after the first ten seconds, or the first half. Pace: duration of '
            'plain Python relative to its best; above 1 if processes share a core. *Copying only* '
            'is `copying_node.py`, which publishes as much for every joint state and computes '
            'nothing: the share of rclpy and the middleware. A mode at the end of a line means '
            'torque_controller; with cartesian_impedance the topics of the task are also '
            'published.', '', '![node](node.png)', '',
            *table(('node', *keys), rows)]


def start(results):
    """Return the table of start-up times."""
    warm, background = results['warm'], results.get('in the background')
    return ['## The start of programs', '',
            'With cached kernels, from the import of rbd_ros in a new process to the first model '
            'of a robot with seven joints, and to its gravity torques; and whole commands. The '
            'shortest of several.', '',
            *table(('program', 's'), [(name, f'{time:.2f}')
                                      for name, time in results['library'].items()]),
            '## The start of the node', '',
            'From the start of the process to the first ~/dynamics in another process; '
            'description and joint states are available before. For the torque controller: to its '
            'first command.', '',
            *table(('kernels', 's'), [
                ('cached', f'{median(warm):.2f} ({min(warm):.2f} ... {max(warm):.2f})'),
                ('to be compiled', f'{results["cold"]:.1f}'),
                *((f'to be compiled, {mode}', f'{one["first"]:.1f}')
                  for mode, one in results.get('modes', {}).items()),
                ('all of the node compiled, in the background',
                 f'{background["all"]:.1f}' if background else '?'),
                ('all of the library compiled by `rbd_ros warmup`, without a node',
                 f'{results["all kernels"]:.1f}')]),
            *([f'During compilation, {background["unanswered"]} of {background["states"]} states '
               'were not answered.', ''] if background else []),
            'Without numba (`RBD_ROS_KERNELS=cc`) and with an empty cache: to the first message, '
            'gravity torques, and until all topics flow that the node publishes by default. Pace '
            'as above, before the start.', '',
            *table(('joints', 'first output, s', 'all topics, s', 'pace'), [
                (joints, f'{one["first"]:.1f}', f'{one["all"]:.1f}', f'{one["pace"]:.2f}')
                for joints, one in results.get('compiled', {}).items()])]


def retiming(results):
    """Return the table of retimed paths."""
    return ['## Fastest motions', '',
            f'`retime` and toppra alone, with our inverse dynamics as its constraint, on paths of '
            f'a Panda through {results["waypoints"]} waypoints: duration, time of the call, and '
            'the largest excess of a limit of velocity, acceleration or torque at 1 kHz.', '',
            *table(('path', 'rbd_ros, s', 'ms', 'excess, %', 'toppra, s', 'ms', 'excess, %'),
                   [(name, *(f'{x:{form}}' for one in row for x, form in zip(
                       one, ('.3f', '.0f', '.3f')))) for name, row in results['rows'].items()])]


def fleet(results):
    """Return the table of many robots."""
    return ['## Many robots', '',
            f'Robots with seven joints at 100 Hz, {results["seconds"]:.0f} s each; another '
            'process subscribes to ~/effort_commands and ~/dynamics of all and counts the latter.',
            '',
            *table(('executor', 'processes', 'robots', 'answered, %', 'CPU %', 'CPU % a robot',
                    'memory, MB'),
                   [(row['executor'], 'one each' if row['one each'] else 'one', row['robots'],
                     f'{100 * row["answered"]:.2f}', f'{row["CPU %"]:.0f}',
                     f'{row["CPU %"] / row["robots"]:.1f}', f'{row["memory"] / 2 ** 20:.0f}')
                    for row in results['rows']])]


def soak(results):
    """Return the counts of ten minutes of disturbances."""
    return ['## Ten minutes of disturbance', '',
            'Counts of `make soak` (`test/soak.py`), which fails on any wrong answer, jump of a '
            'command or state lost without a reason.', '',
            *table(('', ''), [(key, f'{x:,.2f}' if isinstance(x, float) else f'{x:,}')
                              for key, x in results['counts'].items()])]


def main():
    """Write the report on the measured parts; on quick runs, print the tables in short."""
    quick = options(__doc__).parse_args().quick
    sections = {'library': library, 'single_calls': single_calls, 'functions': functions,
                'growth': growth, 'closed_loops': closed_loops, 'batch': batch,
                'batch_sizes': batch_sizes, 'limit': limit,
                'loaded': report_code.loaded,
                'generated': report_code.generated, 'in_jax': report_code.in_jax,
                'casadi': report_code.casadi, 'retiming': retiming, 'node': node,
                'start': start, 'fleet': fleet, 'soak': soak}
    found = {part: results for part in sections if (results := load(part, quick))}
    if not found:
        raise SystemExit('no measurements found: run `make bench`')
    short = in_short.short(found)
    if quick:
        print(*short, *(closed_loops(found['closed_loops']) if 'closed_loops' in found else ()),
              sep='\n')
        return
    in_short.put(found)
    lines = [*head(found), '## In short', '', *short]
    rows = targets(found)
    lines += ['## Targets', '', 'Ratios are to Pinocchio called from Python, for the slowest '
              f'robot of a kind. {sum(row[-1] == "met" for row in rows)} of {len(rows)} '
              'are met.', '', *table(('target', 'at most', 'measured', ''), rows)]
    drawings = {'library': ('ratios', plots.ratios), 'growth': ('growth', plots.growth),
                'batch': ('batch', plots.batch), 'node': ('node', plots.node)}
    for part, results in found.items():
        lines += sections[part](results)
        if part in drawings:
            name, draw = drawings[part]
            draw(results, HERE / f'{name}.png')
    (HERE / 'RESULTS.md').write_text('\n'.join(lines).rstrip() + '\n')
    print(HERE / 'RESULTS.md', 'written')


if __name__ == '__main__':
    main()
