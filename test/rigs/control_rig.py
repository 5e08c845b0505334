# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Generated controllers, compiled against a stand-in for ros2_control and driven by ctypes."""

import ctypes
from functools import cache
from pathlib import Path
import subprocess
from tempfile import TemporaryDirectory

import numpy as np
from rbd_ros.control.generated_controller import controller_files

STAND_IN = Path(__file__).parents[1] / 'control' / 'ros2_control'
VERSIONS = {'jazzy': 4, 'kilted': 5, 'rolling': 6}
STRICT = ['-std=c++17', '-Wall', '-Wextra', '-Werror', '-pedantic', '-Wconversion', '-Wshadow']
PERIOD = 2e-3   # s
_objects = TemporaryDirectory()


def write_package(model, folder, **options):
    """Write the package of a robot with the prefix ``r``."""
    for name, text in controller_files(model, prefix='r', **options).items():
        (folder / name).write_text(text)


def compile_all(folder, output, *flags, sources, version='kilted'):
    """Compile a written package with a program or an object that drives it."""
    subprocess.run(['gcc', '-std=c99', '-O1', '-fPIC', '-c', 'r_dynamics.c'], cwd=folder,
                   check=True)
    compile_cpp(version, *sources, 'r_dynamics.o', '-o', output, *flags, cwd=folder)


def compile_cpp(version, *arguments, cwd):
    """Compile against the stand-in for a version of ros2_control."""
    subprocess.run(['g++', *STRICT, '-O1', '-fPIC', f'-DROS2_CONTROL={VERSIONS[version]}', '-I.',
                    '-I', STAND_IN, *arguments], cwd=cwd, check=True)


@cache
def driver():
    """Return the object that drives any package, compiled once in a process."""
    compile_cpp('kilted', '-c', STAND_IN / 'driver.cpp', '-o', 'driver.o', cwd=_objects.name)
    return Path(_objects.name) / 'driver.o'


class Rig:
    """The controller of a robot, written to an empty folder, as a controller manager drives it."""

    def __init__(self, model, folder, **options):
        self.model, self.n = model, model.nv
        write_package(model, folder, **options)
        compile_all(folder, 'rig.so', '-shared', '-Wl,-Bsymbolic',
                    sources=['controller.cpp', driver()])
        self._code = ctypes.CDLL(str(folder / 'rig.so'))
        self._code.set_number.argtypes = [ctypes.c_char_p, ctypes.c_double]
        self._code.update.argtypes = [ctypes.c_double]
        for name in ('reason', 'logged', 'names'):
            getattr(self._code, name).restype = ctypes.c_char_p

    def give(self, name, value):
        """Set a parameter; return whether it was accepted."""
        code, name = self._code, name.encode()
        if isinstance(value, bool):
            return bool(code.set_bool(name, value))
        if isinstance(value, str):
            return bool(code.set_text(name, value.encode()))
        if np.ndim(value) == 0:
            return bool(code.set_number(name, value))
        if len(value) and isinstance(value[0], str):
            texts = (ctypes.c_char_p * len(value))(*(one.encode() for one in value))
            return bool(code.set_texts(name, texts, len(value)))
        values = np.asarray(value, float)
        return bool(code.set_numbers(name, ctypes.c_void_p(values.ctypes.data), len(values)))

    def configure(self, **parameters):
        """Make a new controller with parameters, by name with __ for a dot; whether it can be."""
        self._code.destroy()
        for name, value in parameters.items():
            self.give(name.replace('__', '.'), value)
        return bool(self._code.create(b'arm', round(1.0 / PERIOD)) and self._code.configure())

    def start(self, q, v=None, efforts=None, *, chained=False, **parameters):
        """Make, configure and activate a controller at a state; return whether it is active."""
        assert self.configure(**parameters), self.logged
        self.state(q, v, efforts)
        return self.activate(chained)

    def activate(self, chained=False):
        """Activate the controller; return whether it is active."""
        return bool(self._code.activate(chained))

    def deactivate(self):
        """Deactivate the controller; return whether that worked."""
        return bool(self._code.deactivate())

    def state(self, q, v=None, efforts=None):
        self._write(self._code.write_states, *(x for x in (q, v, efforts) if x is not None))

    def refer(self, q, v=None, a=None, tau=None):
        zero = np.zeros(self.n)
        self._write(self._code.write_references,
                    *(zero if x is None else x for x in (q, v, a, tau)))

    def update(self, period=PERIOD):
        """Update once; return whether it was OK."""
        return bool(self._code.update(period))

    def step(self, q, v=None, efforts=None, period=PERIOD):
        """Return the command for a state."""
        self.state(q, v, efforts)
        assert self.update(period), self.logged
        return self.command

    def lock(self, kind, locked=True):
        """Lock the first command, state, reference or output (c, s, r, o), or unlock it."""
        self._code.lock(ctypes.c_char(kind.encode()), locked)

    @staticmethod
    def _write(function, *arrays):
        values = np.ascontiguousarray(np.concatenate(arrays), float)
        function(ctypes.c_void_p(values.ctypes.data))

    def _read(self, function, *shape):
        values = np.empty(shape)
        function(ctypes.c_void_p(values.ctypes.data))
        return values

    @property
    def command(self):
        return self._read(self._code.read_commands, self.n)

    @property
    def references(self):
        """Return q, v, a and tau of the references, one a row."""
        return self._read(self._code.read_references, 4, self.n)

    @property
    def results(self):
        """Return gravity, Coriolis and external torques, one a row."""
        return self._read(self._code.read_results, 3, self.n)

    @property
    def logged(self):
        return self._code.logged().decode()

    @property
    def reason(self):
        return self._code.reason().decode()

    def names(self, kind):
        """Return the names of commands, states, references or outputs (c, s, r, o)."""
        return self._code.names(ctypes.c_char(kind.encode())).decode().split()
