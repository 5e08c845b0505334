# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions of `rbd_ros` for many states at once, on all cores.

They have the names of those in `rbd_ros` and `rbd_ros.analysis`, and their arguments and results
have one state per row. States are vectorized, and threads take them in chunks. The additional
memory does not grow with the number of states. Memory of results of a quarter of a megabyte and
more stays with the process when they are dropped, up to a sixteenth of the machine's; later
results reuse it.

Every function takes

- ``threads``: the number of threads; default: one per core;
- ``progress``: called as ``progress(done, states)`` after every chunk;
- ``out``: arrays for the results, which are returned: those of an earlier call, or others of the
  same shapes, float64 or float32. After an error their content is undefined.

Instead of a model, functions of dynamics take an object of `rbd_ros.codegen.load` that has them:
its code then computes the states, in about half the time of the kernels.

Each of ``external_wrenches`` is one moment and force (6,) for all states, or one per state
(states, 6). C has the Christoffel form; M or C alone take as long as `all_terms`. ``prescribed``
of `hybrid_dynamics` is (nv,) or (states, nv). All functions raise StateError for an
array, also ``out``, of the wrong shape; errors of a single state name its number.

"""

from importlib import import_module

from rbd_ros._internal.lazy_exports import export

# Functions elsewhere that take many states.
_OF_MANY = {'friction_torques', 'identify', 'spring_torques'}
_get, _directory, _elsewhere = export(__name__, {
    'configurations': ['difference', 'integrate'],
    'regressors': ['normal_equations', 'NormalEquations', 'regressor_factor',
                   'torque_regressor_product', 'torque_regressor_transposed_product'],
    'threads': ['CHUNK']})


def __dir__() -> list[str]:
    return sorted({*__getattr__('__all__'), *_directory()})    # type: ignore[misc]


def __getattr__(name: str) -> object:
    """Return a function; the error for a function of one state states why there is none here."""
    if name not in _elsewhere and (name == '__all__' or not name.startswith('_')):
        declared = import_module('rbd_ros.batch.functions')
        if name == '__all__':
            return sorted({*_elsewhere, *declared.__all__})
        if hasattr(declared, name):
            return getattr(declared, name)
        from inspect import isfunction, signature   # Imported lazily: it is slow to import.
        for home in ('rbd_ros', 'rbd_ros.analysis'):
            function = getattr(import_module(home), name, None)
            if isfunction(function) and {'q', 'v'} & {*signature(function).parameters}:
                raise AttributeError(f"rbd_ros.batch has no '{name}': " + (
                    f'{home}.{name} takes many states' if name in _OF_MANY else 'it has no kernel '
                    f'for many states; call {home}.{name} for one after the other'))
    return _get(name)
