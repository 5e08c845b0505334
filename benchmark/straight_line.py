# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time straight-line code of inverse dynamics of given robots, compiled by gcc and by numba.

It is what the library could gain by compiling each robot: its kernels are compiled once, for all
robots. Many states are computed eight at a time (or as many as fit into a register), as by
`rbd_ros.batch`: with gcc in lanes, without the time to arrange states so, and with numba both in
lanes and from arrays of states. All results are compared with the library's.

"""

import ctypes
from functools import partial
import os
from pathlib import Path
import re
import subprocess
from tempfile import TemporaryDirectory

from limit import AGREEMENT, FLAGS, side_by_side
import numba
import numpy as np
import rbd_ros
from rbd_ros import batch, Workspace
from rbd_ros.codegen import numpy_source, trace
from rbd_ros.codegen.c import Style, Writer
from rbd_ros.codegen.c_sines import cosines_and_sines, HEADERS
from rbd_ros.kernels.jit.compiled import disable_disk_cache, kernel
from rbd_ros.kernels.lanes.lanes import (entry, gather, scatter, set_entry, WIDTH,
                                         zeros_for_lanes)
from rbd_ros.kernels.lanes.sines import cosines_and_sines as replace_angles
from robots import robots
from timing import one_core, options, save, take_turns

LABELS = ('Panda', 'Talos')
STATES = 4096
# C: of one state, of many, and of many in lanes. Vectors of gcc have the operators of doubles.
C_SOURCE = """
{headers}
#define ONE_PART static __attribute__((noinline))
#define ONE_RESTRICT restrict
#define LANES_PART static __attribute__((noinline))
#define LANES_RESTRICT restrict
typedef double lanes __attribute__((vector_size({bytes})));
{sines}
#define lanes_cosines_and_sines(n, angle, c, s) \\
    one_cosines_and_sines({width} * (n), (const double *)(angle), (double *)(c), (double *)(s))
{one}
{lanes}
void one_by_one(const double *q, const double *v, const double *a, double *tau, long count)
{{
    for (long k = 0; k < count; ++k)
        one_inverse_dynamics(q + {n} * k, v + {n} * k, a + {n} * k, tau + {n} * k);
}}
void in_lanes(const lanes *q, const lanes *v, const lanes *a, lanes *tau, long count)
{{
    for (long k = 0; k < count / {width}; ++k)
        lanes_inverse_dynamics(q + {n} * k, v + {n} * k, a + {n} * k, tau + {n} * k);
}}
"""
# The kernels. Arguments named q_ and the like are lanes: kernels take q, v and a for vectors.
# `recursion` takes one state, or lanes of states; `work` is for cosines, and sines behind them.
NUMBA_SOURCE = """
@numba.njit(fastmath={{'contract', 'nsz'}}, error_model='numpy')
def recursion(q, v, a, tau, work, count):
{recursion}

@kernel
def one(q, v, a, tau, work):
    recursion(q, v, a, tau, work, {padded})

@kernel
def one_by_one(Q, V, A, Tau, work):
    for k in range(len(Q)):
        recursion(Q[k], V[k], A[k], Tau[k], work, {padded})

@kernel
def in_lanes(Q, V, A, Tau, work):
    for k in range(len(Q)):
        recursion(Q[k], V[k], A[k], Tau[k], work, {angles})

@kernel
def of_states(Q, V, A, Tau, q_, v_, a_, tau_, work):
    for first in range(0, len(Q), {width}):
        gather(Q, first, q_)
        gather(V, first, v_)
        gather(A, first, a_)
        recursion(q_, v_, a_, tau_, work, {angles})
        scatter(tau_, first, Tau)

@kernel
def packing(Q, V, A, Tau, q_, v_, a_, tau_):
    for first in range(0, len(Q), {width}):
        gather(Q, first, q_)
        gather(V, first, v_)
        gather(A, first, a_)
        scatter(tau_, first, Tau)
"""
OF_ONE_STATE = 8    # angles at once
LOADED = re.compile(r'    (\w+) = (\w+)\[\.\.\., (\d+)\]')
SINE = re.compile(r'    ((?:cos|sin)_(\w+)) = np\.(cos|sin)\(\2\)')
STORED = re.compile(r'    (\w+)\[\.\.\., (\d+)\] = (.*)')


def numba_functions(graph):
    """Return the functions of NUMBA_SOURCE, not compiled yet, and their numbers of angles."""
    text = numpy_source(graph)
    angles = list(dict.fromkeys(found[1] for found in SINE.findall(text)))
    lines, before = [], True
    for line in text[text.index('    states = '):text.rindex('    return')].splitlines()[1:]:
        if found := LOADED.fullmatch(line):
            line = '    {} = entry({}, {})'.format(*found.groups())
        elif found := SINE.fullmatch(line):
            if before:
                lines += [f'    set_entry(work, {k}, {x})' for k, x in enumerate(angles)]
                lines.append('    replace_angles(work, 0, count)')
                before = False
            k = angles.index(found[2])
            line = f'    {found[1]} = entry(work, {k if found[3] == "cos" else f"count + {k}"})'
        elif found := STORED.fullmatch(line):
            line = '    set_entry({}, {}, {})'.format(*found.groups())
        elif 'np.' in line:
            continue        # creates the result
        lines.append(line)
    padded = -(-len(angles) // OF_ONE_STATE) * OF_ONE_STATE
    names = {'entry': entry, 'gather': gather, 'kernel': kernel, 'numba': numba,
             'replace_angles': replace_angles, 'scatter': scatter, 'set_entry': set_entry}
    exec(NUMBA_SOURCE.format(recursion='\n'.join(lines), width=WIDTH, angles=len(angles),
                             padded=padded), names)
    return names, len(angles), padded


def c_library(graph, n):
    """Return the functions of C_SOURCE, compiled."""
    text = C_SOURCE.format(
        headers='\n'.join(f'#include <{name}>' for name in HEADERS), n=n, bytes=8 * WIDTH,
        width=WIDTH, sines=cosines_and_sines('one', 'restrict', False),
        one=Writer(Style('one', False), graph).function(),
        lanes=Writer(Style('lanes', False), graph).function().replace('double', 'lanes'))
    with TemporaryDirectory() as folder:
        path = Path(folder, 'code.so')
        subprocess.run(['gcc', *FLAGS, '-x', 'c', '-', '-o', str(path), '-lm'], input=text,
                       text=True, check=True)
        return ctypes.CDLL(str(path))


def timed(function):
    """Return what a function returns, and how long it took, s of the processor."""
    before = os.times()
    found = function()
    after = os.times()
    return found, sum(after[:4]) - sum(before[:4])


class Straight:
    """Straight-line code of inverse dynamics of a robot, compiled, with arguments of all kinds."""

    def __init__(self, model, states):
        graph, n = trace(model, 'inverse_dynamics'), model.nv
        self.n, self.states, self.operations = n, states, len(graph.operations)
        self.library, self.seconds_of_gcc = timed(lambda: c_library(graph, n))
        self.library.one_inverse_dynamics.argtypes = [ctypes.c_void_p] * 4
        self.numba, angles, padded = numba_functions(graph)
        self.result = np.zeros((STATES, n))
        self.lanes = [side_by_side(x) for x in (*states, self.result)]
        self.block = [zeros_for_lanes((n, WIDTH)) for _ in range(4)]
        self.room = zeros_for_lanes((2 * angles, WIDTH))
        self.room_of_one = zeros_for_lanes((2 * padded,))

    def _c(self, name, arrays):
        function, pointers = getattr(self.library, name), [x.ctypes.data for x in arrays]
        arguments = [*map(ctypes.c_void_p, pointers), ctypes.c_long(STATES)]
        return lambda: function(*arguments)

    def of_many(self):
        """Return calls for many states, by name, and how their results are read."""
        rows, lanes = (*self.states, self.result), self.lanes
        calls = {
            'gcc, one by one': (self._c('one_by_one', rows), False),
            'numba, one by one': (partial(self.numba['one_by_one'], *rows, self.room_of_one),
                                  False),
            'gcc, in lanes': (self._c('in_lanes', lanes), True),
            'numba, in lanes': (partial(self.numba['in_lanes'], *lanes, self.room), True),
            'numba, of arrays': (partial(self.numba['of_states'], *rows, *self.block, self.room),
                                 False)}
        return calls, partial(self.numba['packing'], *rows, *self.block)

    def of_one(self):
        """Return calls from Python for the first state, by name; they write to `result`."""
        function = self.library.one_inverse_dynamics

        @kernel
        def by_gcc(q, v, a, tau):
            function(q.ctypes, v.ctypes, a.ctypes, tau.ctypes)
        state = [x[0] for x in (*self.states, self.result)]
        return {'gcc': partial(by_gcc, *state),
                'numba': partial(self.numba['one'], *state, self.room_of_one)}

    def check(self, name, expected, in_lanes=False):
        """Raise unless results are those expected, and clear them."""
        found = self.lanes[3] if in_lanes else self.result[:len(expected)]
        rows = found.swapaxes(1, 2).reshape(-1, self.n) if in_lanes else found
        error = np.max(np.abs(rows - expected)) / np.max(np.abs(expected))
        found[:] = np.nan
        if not error < AGREEMENT:
            raise AssertionError(f'{name}: results differ by {error:.1e}')


def measure(robot, quick=False):
    """Return the times of a robot: of many states, ns a state; of one, ns; to compile, s."""
    model, rng = robot.model, np.random.default_rng(0)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)])
    states = [Q, *rng.normal(size=(2, STATES, model.nv))]
    expected = batch.inverse_dynamics(model, *states)
    out = np.zeros_like(expected)
    own = partial(batch.inverse_dynamics, model, *states, threads=1, out=out)
    one = partial(Workspace(model).inverse_dynamics, *(x[0] for x in states))
    own(), one()
    code = Straight(model, states)
    many, packing = code.of_many()
    first = code.of_one()
    _, seconds = timed(first['numba'])
    for name, call in first.items():
        call()
        code.check(name, expected[:1])
    for name, (call, in_lanes) in many.items():
        call()
        code.check(name, expected, in_lanes)
    of_many = take_turns({'rbd_ros': own, 'packing alone': packing, **{
        name: call for name, (call, _) in many.items()}}, quick=quick)
    of_one = take_turns({'rbd_ros': one, **first}, quick=quick)
    return {'joints': model.nv, 'operations': code.operations,
            'many': {name: 1e9 * float(np.median(t)) / STATES for name, t in of_many.items()},
            'one': {name: 1e9 * float(np.median(t)) for name, t in of_one.items()},
            'compile': {'gcc': code.seconds_of_gcc, 'numba': seconds}}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    disable_disk_cache()
    results = {}
    with one_core():
        for robot in robots():
            if robot.label in LABELS:
                results[robot.label] = found = measure(robot, quick)
                print(robot.label, found, flush=True)
    save('straight_line', quick, {'robots': results})


if __name__ == '__main__':
    main()
