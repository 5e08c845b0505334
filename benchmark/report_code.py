# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sections of the report: robots as code, and their functions in JAX and CasADi."""

from tables import spread, table, verdict

# Largest ns of generated inverse dynamics on one core; ratios to Pinocchio's C++ by function.
GENERATED_NS = {'UR5': 120, 'Panda': 150, 'Talos': 900}
GENERATED_RATIOS = {'inverse_dynamics': 0.4, 'forward_dynamics': 0.6,
                    'inverse_dynamics_derivatives': 1.0, 'forward_dynamics_derivatives': 1.0}
# In JAX: largest ratios, by name in `in_jax.py`, and how often automatic differentiation of a
# recursion takes a gradient's time; from so many states on.
JAX_RATIOS = {'jax to batch': 1.3, 'gradient to derivatives': 3.0}
JAX_AUTODIFF, JAX_STATES = 20.0, 1024


def targets(found):
    """Return a row for every target, as `report.targets`."""
    rows, code = [], found.get('generated')
    for robot, one in code['robots'].items() if code else ():
        rows.append((f'generated inverse dynamics, {robot}, ns', GENERATED_NS[robot],
                     f'{one["ours"][0]:.0f}', verdict(one['ours'][0] <= GENERATED_NS[robot])))
        for name, ours, theirs in zip(code['functions'], one['ours'], one.get('Pinocchio', ())):
            limit = GENERATED_RATIOS[name]
            rows.append((f"generated {name}, {robot}, to Pinocchio's C++", f'{limit:.2f}',
                         f'{ours / theirs:.2f}', verdict(ours / theirs <= limit)))
    mine = [row for row in found['in_jax']['rows']
            if row['states'] >= JAX_STATES] if 'in_jax' in found else ()
    for name, limit, best in (*((name, limit, max) for name, limit in JAX_RATIOS.items()),
                              ('autodiff to gradient', JAX_AUTODIFF, min)):
        ratios = [(row['ratio'][name][1], f'{row["robot"]}, {row["states"]:,}: ')
                  for row in mine if name in row['ratio']]
        if ratios:
            ratio, where = best(ratios)
            good = ratio <= limit if best is max else ratio >= limit
            rows.append((f'in JAX, {name}' + (' (at least)' if best is min else ''),
                         f'{limit:.1f}', f'{where}{ratio:.2f}', verdict(good)))
    return rows


def generated(results):
    """Return the table of generated C."""
    rows = [(robot, name, f'{ours:.0f}', *(
        (f'{theirs:.0f}', f'{ours / theirs:.2f}') if theirs else ('-', '-')))
        for robot, found in results['robots'].items()
        for name, ours, theirs in zip(results['functions'], found['ours'],
                                      found.get('Pinocchio', [None] * 4))]
    return ['## Generated C', '',
            'Functions of `rbd_ros generate` on one core, called from C, sines included, ns: the '
            "shortest of many runs, next to Pinocchio's C++; both compiled with `-O3 "
            '-march=native` (`generated.py`; Pinocchio only if `--eigen` once named the headers '
            'of Eigen).', '',
            *table(('robot', 'function', 'rbd_ros', 'Pinocchio', 'to Pinocchio'), rows),
            *table(('robot', 'compiled by gcc -O2, CPU s',
                    'inverse dynamics in float on a Cortex-M7, KiB'),
                   [(robot, f'{found["compile"]:.1f}',
                     f'{found["Cortex-M7"] / 1024:.1f}' if 'Cortex-M7' in found else '-')
                    for robot, found in results['robots'].items()])]


def straight_line(results):
    """Return the tables of straight-line code in place of kernels."""
    robots = results['robots']
    head = [f'{name}, {found["joints"]} joints' for name, found in robots.items()]

    def rows(key, names):
        return [(words, *(f'{found[key][name]:,.0f}' for found in robots.values()))
                for name, words in names.items()]
    return ['## Straight-line code of a robot', '',
            'What the library could gain if it compiled each robot: inverse dynamics traced to '
            'straight-line code, in place of its kernels, which are compiled once for all robots '
            '(`straight_line.py`). *In lanes*: states are already interleaved for the registers, '
            'as in `limit.c`; *from arrays*: states are packed and unpacked by the code of '
            '`rbd_ros.batch`, whose time alone is in the last line. One core, medians.', '',
            *table(('ns a state of many', *head), rows('many', {
                'rbd_ros': '`rbd_ros.batch`, to existing arrays',
                'numba, of arrays': 'numba, from arrays', 'numba, in lanes': 'numba, in lanes',
                'gcc, in lanes': 'gcc, in lanes',
                'numba, one by one': 'numba, state by state',
                'gcc, one by one': 'gcc, state by state',
                'packing alone': 'packing and unpacking alone'})),
            *table(('ns a call from Python', *head), rows('one', {
                'rbd_ros': '`Workspace.inverse_dynamics`', 'numba': 'numba',
                'gcc': "gcc, called by numba's dispatcher"})),
            *table(('CPU s to compile one function', *head), [
                (compiler, *(f'{found["compile"][compiler]:.1f}' for found in robots.values()))
                for compiler in ('numba', 'gcc')])]


def in_jax(results):
    """Return the table of functions in JAX."""
    names = {'batch': '`batch`, torques', 'jax': 'JAX, torques',
             'derivatives, batch': '`batch`, derivatives', 'gradient, jax': 'JAX, gradient',
             'autodiff of frax': 'gradient by frax'}
    ratios = {'jax to batch': 'torques, JAX to `batch`',
              'gradient to derivatives': 'gradient to derivatives',
              'autodiff to gradient': 'frax to gradient'}
    return ['## In JAX', '',
            'Functions of `rbd_ros.jax` for many states, compiled, median µs, on all cores '
            '(`in_jax.py`): torques by `jit(vmap(inverse_dynamics))`, and the gradient of the sum '
            'of their squares. Next to them the functions of `rbd_ros.batch` that they call, and '
            'the same gradient by automatic differentiation of the recursion of frax.', '',
            *table(('robot', 'states', *names.values(), *ratios.values()),
                   [(row['robot'], f'{row["states"]:,}',
                     *(f'{row["us"][name]:,.0f}' if name in row['us'] else '-'
                       for name in names),
                     *(spread(row['ratio'][name]) if name in row['ratio'] else '-'
                       for name in ratios)) for row in results['rows']])]


def casadi(results):
    """Return the table of functions of CasADi."""
    return ['## In CasADi', '',
            'Functions of `rbd_ros.casadi`, interpreted by CasADi, µs (`with_casadi.py`). '
            '*Jacobian*: with respect to all inputs, by the library, as calls in MX have it; *by '
            'CasADi*: derived from the operations of the function. Hessians are of the sum of the '
            'results.', '',
            *table(('robot', 'of', 'function', 'operations', 'µs'),
                   [(row['robot'], row['dynamics'], row['function'], f'{row["operations"]:,}',
                     f'{row["us"]:,.1f}') for row in results['rows']])]
