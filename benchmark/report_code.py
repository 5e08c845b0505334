# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sections of the report: robots as code, and their functions in JAX and CasADi."""

from tables import spread, table, verdict

# Largest ns of generated inverse dynamics on one core; ratios to Pinocchio's C++ by function.
GENERATED_NS = {'UR5': 120, 'Panda': 150, 'Talos': 900}
GENERATED_RATIOS = {'inverse_dynamics': 0.4, 'forward_dynamics': 0.6,
                    'inverse_dynamics_derivatives': 1.0, 'forward_dynamics_derivatives': 1.0}
# Loaded machine code: small robots, functions of others with a target, and largest ratios to
# Pinocchio called from Python.
SMALL, LARGE = ('UR5', 'Panda'), ('inverse_dynamics', 'gravity_torques', 'forward_dynamics')
LOADED_PINOCCHIO = {'inverse_dynamics': 0.14, 'gravity_torques': 0.18, 'forward_dynamics': 0.2,
                    'all_terms': 0.09, 'inverse_dynamics_derivatives': 0.28,
                    'forward_dynamics_derivatives': 0.28}
# Largest ratios of many states, by function, to others.
MANY = {'forward_dynamics': {'batch': 0.6}, 'inverse_dynamics': {'limit': 1.35}}
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
    for robot, one in found['loaded']['robots'].items() if 'loaded' in found else ():
        for row in one['rows']:
            small, name = robot in SMALL, row['function']
            limits = {'Workspace': 0.5} if small else {'Workspace': 0.65} if name in LARGE else {}
            if small and name in LOADED_PINOCCHIO:
                limits['Pinocchio'] = LOADED_PINOCCHIO[name]
            rows += [(f'loaded {name}, {robot}, to {other}', f'{limit:.2f}',
                      f'{row["ratio"][other]:.2f}', verdict(row['ratio'][other] <= limit))
                     for other, limit in limits.items()]
        rows += [(f'loaded {row["function"]}, many states, {robot}, to {other}', f'{limit:.2f}',
                  f'{row["ratio"][other]:.2f}', verdict(row['ratio'][other] <= limit))
                 for row in one['many'] for other, limit in MANY[row['function']].items()
                 if other in row['ratio']]
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


def loaded(results):
    """Return the table of functions that are loaded as machine code."""
    return ['## Loaded machine code', '',
            'Functions of `rbd_ros.codegen.load`, the methods of `Workspace` and Pinocchio, '
            'called from Python for one state by turns, ns (`loaded.py`). *Way* is what `load` '
            'chooses; the times are those of the code.', '',
            *table(('robot', 'function', 'operations', 'way', 'compiled, s', 'loaded',
                    'Workspace', 'Pinocchio', 'to Workspace', 'to Pinocchio'),
                   [(f'{robot} ({found["joints"]})', f'`{row["function"]}`',
                     f'{row["operations"]:,}', row['way'], f'{row["compile"]:.1f}',
                     *(f'{row["ns"][name]:,.0f}' if name in row['ns'] else '-'
                       for name in ('loaded', 'Workspace', 'Pinocchio')),
                     *(f'{row["ratio"][name]:.2f}' if name in row['ratio'] else '-'
                       for name in ('Workspace', 'Pinocchio')))
                    for robot, found in results['robots'].items() for row in found['rows']]), '',
            'Inverse dynamics with a fresh result, `out=np.empty(n)`, next to the plain function, '
            'ns.', '',
            *table(('robot', 'loaded', 'plain', 'Pinocchio', 'to plain', 'to Pinocchio'),
                   [(robot, *(f'{ns:,.0f}' for ns in found['fresh']['ns'].values()),
                     *(f'{ratio:.2f}' for ratio in found['fresh']['ratio'].values()))
                    for robot, found in results['robots'].items()]), '',
            'Many states on one thread, the shortest ns a state, into existing arrays. The first '
            'call compiles the code of many states. *Limit*: `limit.c`, whose states are '
            'interleaved already.', '',
            *table(('robot', 'function', 'loaded', '`batch`', 'limit', 'to `batch`', 'to limit',
                    'first call, s'),
                   [(robot, f'`{row["function"]}`', f'{row["ns"]["loaded"]:.0f}',
                     *(f'{row["ns"][name]:.0f}' if name in row['ns'] else '-'
                       for name in ('batch', 'limit')),
                     *(f'{row["ratio"][name]:.2f}' if name in row['ratio'] else '-'
                       for name in ('batch', 'limit')), f'{row["first"]:.1f}')
                    for robot, found in results['robots'].items() for row in found['many']])]


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
