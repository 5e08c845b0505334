# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The figures in short: `report.py` writes them to RESULTS.md, and the first table to README.md.

doc/comparison.md includes those of RESULTS.md.

"""

from collections.abc import Collection
from pathlib import Path
from statistics import median

from timing import HERE

README = HERE.parent / 'README.md'
BEGIN, END = '<!-- Written by `make bench`, from here -->', '<!-- to here. -->'
ROBOTS = ('UR5', 'Panda', 'Talos', 'Talos, floating')
# Functions, and how the tables call them.
FUNCTIONS = {
    'all terms': 'M, C, g, C v, CoM and J_CoM in one call',
    'inverse dynamics': 'inverse dynamics',
    'inverse dynamics, packed': 'inverse dynamics, q, v and a in one array',
    'forward dynamics': 'forward dynamics',
    'hybrid dynamics': 'hybrid dynamics',
    'gravity torques': 'gravity torques',
    'derivatives of inverse dynamics': 'derivatives of inverse dynamics',
    'derivatives of forward dynamics': 'derivatives of forward dynamics',
    'torque regressor': 'torque regressor',
    'world Jacobian': 'Jacobian of a link',
    'rate of the world Jacobian': 'its rate',
    'centroidal momentum matrix': 'centroidal momentum matrix',
    'and its rate': 'and its rate',
    'task space': 'task space: Λ, η, J̄ and more',
    'derivatives of M': 'all derivatives of M',
    'derivatives of C': 'all derivatives of C'}
# Functions in the table of the README.
SHOWN_FIRST = ('all terms', 'inverse dynamics', 'forward dynamics', 'hybrid dynamics',
               'gravity torques', 'derivatives of inverse dynamics',
               'derivatives of forward dynamics', 'torque regressor')
# Of the node: what listens to everything, at 1 kHz.
NODE = {'executor': 'events', 'rate': 1000}


def digits(us: float) -> str:
    """Return a time with two significant digits."""
    return f'{us:.1f}' if us < 9.95 else f'{us:.0f}'


def of_code(results: dict) -> dict[tuple[str, str], float]:
    """Return the ratios of loaded code to Pinocchio, by function and robot."""
    return {(f'derivatives of {name}' if derivatives else name, robot): row['ratio']['Pinocchio']
            for robot, found in results['robots'].items() for row in found['rows']
            for name, derivatives, _ in [row['function'].replace('_', ' ').partition(
                ' derivatives')]
            if row['way'] != 'kernels' and 'Pinocchio' in row['ratio']}


def cell(row: dict, code: float | None) -> str:
    """Return our time, and that of Pinocchio and the ratio of code if it has such a function."""
    ours = digits(row['us']['rbd_ros'])
    if 'Pinocchio' not in row['us']:
        return ours
    text = f'{ours} / {digits(row["us"]["Pinocchio"])} = {row["ratio"]["Pinocchio"][1]:.2f}'
    return text if code is None else f'{text}, code {code:.2f}'


def library(found: dict, functions: Collection[str] = tuple(FUNCTIONS)) -> list[str]:
    """Return the table of single calls."""
    rows = {(row['function'], row['robot']): row for row in found['library']['rows']}
    code = of_code(found['loaded']) if 'loaded' in found else {}
    joints = {robot: row['joints'] for (_, robot), row in rows.items()}
    lines = ['| µs, rbd_ros / Pinocchio = ratio | '
             + ' | '.join(f'{robot} ({joints[robot]})' for robot in ROBOTS) + ' |',
             '|---' * (1 + len(ROBOTS)) + '|']
    return lines + [f'| {name} | ' + ' | '.join(
        cell(rows[function, robot], code.get((function, robot))) for robot in ROBOTS) + ' |'
        for function, name in FUNCTIONS.items()
        if function in functions and (function, ROBOTS[0]) in rows]


def node(results: dict) -> list[str]:
    """Return the table of the node."""
    lines = ['| the node at 1 kHz | answer, ms | 99 % within, ms | CPU, % | lost | of states |',
             '|---' * 6 + '|']
    for row in results['rows']:
        if (NODE.items() <= row.items() and row['node'] in ('rbd_ros', 'copying')
                and 'failed' not in row):
            name = f'{row["joints"]} joints' + (', copying only' if row['node'] == 'copying'
                                                else '')
            lines.append(f'| {name} | {row["p50 ms"]:.1f} | {row["p99 ms"]:.1f} | '
                         f'{row["CPU %"]:.0f} | {row["lost"]:,} | {row["sent"]:,} |')
    return lines


def batch(results: dict) -> list[str]:
    """Return the table of batches, with one thread and existing arrays."""
    rows = {(row['function'], row['robot']): row for row in results['rows']
            if row['threads'] == 1}
    robots = list(dict.fromkeys(robot for _, robot in rows))
    lines = ['| ns a state among many, one thread | ' + ' | '.join(robots) + ' |',
             '|---' * (1 + len(robots)) + '|']
    for function in dict.fromkeys(function for function, _ in rows):
        cells = []
        for robot in robots:
            row = rows[function, robot]
            ns = row['ns']
            cells.append(f'{ns["in turns"]:,.0f} / {ns["Pinocchio"]:,.0f} = '
                         f'{row["ratio"]["Pinocchio"][1]:.2f}' if row['ratio']
                         else f'{ns["out"]:,.0f}')
        lines.append(f'| {function} | ' + ' | '.join(cells) + ' |')
    return lines


def start(results: dict) -> list[str]:
    """Return the start-up times of the node."""
    return [f'From its start to its first output the node takes {median(results["warm"]):.1f} s, '
            f'and {results["cold"]:.0f} s',
            'where its kernels have to be compiled first; all kernels of the library take '
            f'{results["all kernels"]:.0f} s.']


def soak(results: dict) -> list[str]:
    """Return the counts of ten minutes of disturbances."""
    counts = {key: f'{x:,}' if isinstance(x, int) else f'{x:,.1f}'
              for key, x in results['counts'].items()}
    return ['| `make soak` | |', '|---|---|',
            *(f'| {key} | {x} |' for key, x in counts.items())]


def short(found: dict) -> list[str]:
    """Return the tables of the parts that were measured."""
    lines = []
    if 'library' in found:
        lines += [*library(found), '']
    for part, section in (('batch', batch), ('node', node), ('start', start), ('soak', soak)):
        if part in found:
            lines += [*section(found[part]), '']
    return lines


def put(found: dict, path: Path = README) -> None:
    """Write the table of single calls between the marks in the README, if it was measured."""
    if 'library' not in found:
        return
    text = path.read_text(encoding='utf-8')
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise SystemExit(f'{path} has no place for figures: {BEGIN} ... {END}')
    lines = library(found, SHOWN_FIRST)
    path.write_text('\n'.join((before + BEGIN, '', *lines, '', END)) + after, encoding='utf-8')
