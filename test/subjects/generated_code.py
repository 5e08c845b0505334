# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Evaluates traced graphs, and compiles and calls generated C, for tests."""

import ctypes
import shutil
import subprocess

import numpy as np
import rbd_ros
from rbd_ros.codegen import FUNCTIONS as CODE
from rbd_ros.workspace.quantity import VECTORS
from rbd_ros.workspace.workspace import workspace_of
from robots import relative_error

# All that a strict project turns on.
STRICT = ['-Wall', '-Wextra', '-Wconversion', '-Wshadow', '-pedantic', '-Werror']
# A compiler of each kind that this machine has; g++ compiles the same sources as C++.
COMPILERS = [words for words in (['cc', '-std=c99'], ['clang', '-std=c99'],
                                 ['g++', '-x', 'c++', '-std=c++17']) if shutil.which(words[0])]
PENDULUM = """<robot name="pendulum"><link name="base"/><link name="rod"><inertial>
<origin xyz="0.5 0 0"/><mass value="2"/><inertia ixx="0" iyy="0.1" izz="0.1" ixy="0" ixz="0"
iyz="0"/></inertial></link><joint name="hinge" type="continuous"><parent link="base"/>
<child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
FUNCTIONS = {'add': np.add, 'sub': np.subtract, 'mul': np.multiply, 'div': np.divide,
             'neg': np.negative, 'abs': np.abs, 'sign': np.sign, 'sqrt': np.sqrt, 'sin': np.sin,
             'cos': np.cos, 'exp': np.exp, 'tanh': np.tanh}


def evaluate(graph, *inputs):
    """Return the outputs of a graph for many states, the first axis."""
    values = []
    for kind, arguments in graph.operations:
        if kind == 'constant':
            values.append(arguments[0])
        elif kind == 'input':
            values.append(inputs[arguments[0]][:, arguments[1]])
        else:
            values.append(FUNCTIONS[kind](*(values[k] for k in arguments)))
    count = len(inputs[0])
    return [np.moveaxis(np.array([np.broadcast_to(values[k], count) for k in numbers.ravel()]),
                        0, -1).reshape(count, *numbers.shape) for numbers in graph.results]


def library_results(model, graph, states, **options):
    """Return what the library computes for states, by name of the input."""
    found = []
    for k in range(len(states['q'])):
        one = CODE[graph.name].call(workspace_of(model), **{
            x.name: states[x.name][k] for x in graph.inputs}, **options)
        found.append([np.array(x) for x in one[:len(graph.outputs)]])
    return [np.array(x) for x in zip(*found)]


def options_of(model, function, link=None):
    """Return the options of a function: every second acceleration is given."""
    known = {'link': link or model.link_names[-1], 'prescribed': np.arange(model.nv) % 2 == 0}
    return {name: known[name] for name in CODE[function].options}


def assert_of_library(found, model, graph, states, tolerance, **options):
    """Assert that outputs of a graph are what the library computes for states."""
    for array, x, y in zip(graph.outputs, found, library_results(model, graph, states, **options),
                           strict=True):
        # 1 - J_bar J is zero, a difference of ones, if the arm is not redundant.
        y, x = (y + 1.0, x + 1.0) if array.name == 'null_projector' else (y, x)
        assert relative_error(x, y) < tolerance, (graph.name, array)


def random_states(model, count, seed=0):
    """Return q, v, a and tau of states, by name; of many, configurations recur."""
    rng = np.random.default_rng(seed)
    q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(min(count, 100))])
    return {**{name: rng.normal(size=(count, model.nv)) for name in VECTORS},
            'q': q[np.arange(count) % len(q)]}


def write(files, folder):
    """Write the files of a package; return the name of its source without the suffix."""
    for name, text in files.items():
        (folder / name).write_text(text)
    return next(name[:-2] for name in files if name.endswith('.c') and name[:5] != 'test_')


def run_test(files, folder, compiler, *flags):
    """Compile and run the test program of a package; return its output."""
    name = write(files, folder)
    subprocess.run([*compiler, *flags, f'test_{name}.c', f'{name}.c', '-o', 'program', '-lm'],
                   cwd=folder, check=True)
    done = subprocess.run(['./program'], cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


class Library:
    """The functions of a package, compiled."""

    def __init__(self, files, folder, prefix, *flags, real=np.float64):
        name = write(files, folder)
        subprocess.run(['cc', '-std=gnu99', *flags, '-fPIC', '-shared', f'{name}.c', '-o',
                        f'{name}.so', '-lm'], cwd=folder, check=True)
        self._code, self._prefix = ctypes.CDLL(str(folder / f'{name}.so')), prefix
        self._real = real

    def __call__(self, graph, *inputs):
        """Return the outputs of the function of a graph for many states."""
        function = getattr(self._code, f'{self._prefix}_{graph.name}')
        inputs = [np.ascontiguousarray(x, self._real) for x in inputs]
        count = len(inputs[0])
        outputs = [np.full((count, *x.shape), np.nan, self._real) for x in graph.outputs]
        places = [(x.ctypes.data, x.strides[0]) for x in (*inputs, *outputs)]
        for k in range(count):
            function(*(ctypes.c_void_p(start + k * step) for start, step in places))
        return outputs
