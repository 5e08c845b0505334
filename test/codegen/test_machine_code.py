# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Machine code is compiled once, by a compiler that works; rows 58 of doc/faults.md."""

import errno
import os
from pathlib import Path
import stat
import subprocess
import sys

import numpy as np
import pytest
import rbd_ros
from rbd_ros.codegen import load
from rbd_ros.kernels.jit import c_compiler as machine_code
from rbd_ros.kernels.jit import kernel_cache

ARM = str(Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf')
ONE = ['gravity_torques']
CC = os.environ.get('CC', 'cc')


@pytest.fixture
def arm():
    return rbd_ros.load_urdf(ARM)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a directory for machine code that is not there yet, without optimization."""
    monkeypatch.setattr(machine_code, 'OPTIONS', ('-O0', *machine_code.OPTIONS[1:]))
    return tmp_path / 'code'


def compiled(model, folder, **options):
    """Load gravity torques, check them, and return whether they were compiled now."""
    code = load(model, ONE, directory=folder, **options)
    q = np.linspace(0.1, 0.9, model.nq)
    assert np.allclose(code.gravity_torques(q), rbd_ros.gravity_torques(model, q), atol=1e-4)
    return code.report()['gravity_torques'].seconds > 0.0


def code_of(folder):
    """Return the file of gravity torques; the other one is the module for Python."""
    file, = (x for x in folder.iterdir() if b'PyInit_' not in x.read_bytes())
    return file


def compiler(folder, text):
    """Return the path of a program."""
    path = folder / 'compiler'
    path.write_text(f'#!/bin/sh\n{text}\n')
    path.chmod(0o755)
    return str(path)


def test_code_is_compiled_once_per_robot_options_and_compiler(arm, folder, tmp_path, monkeypatch,
                                                              caplog):
    assert compiled(arm, folder)
    assert not compiled(rbd_ros.load_urdf(ARM), folder)
    assert compiled(rbd_ros.with_payload(arm, arm.link_names[-1], 1.0), folder)
    assert compiled(arm, folder, single=True)
    assert not compiled(arm, folder)
    # Another version of the same compiler.
    monkeypatch.setenv('CC', compiler(tmp_path, f'echo version 77 >&2; exec {CC} "$@"'))
    assert compiled(arm, folder)
    assert not compiled(arm, folder)
    assert not caplog.messages


def test_code_follows_the_processor(arm, folder, monkeypatch):
    assert compiled(arm, folder)
    found = machine_code.find_compiler()
    assert machine_code.NATIVE in found.words
    monkeypatch.setattr(machine_code, '_described', lambda words: found._replace(
        description=found.description.replace('-mavx2', '-mno-avx2') + '-mother'))
    assert compiled(arm, folder)


@pytest.mark.parametrize('damage', ['empty', 'flipped'])
def test_fault_58_damaged_code_is_replaced(arm, folder, caplog, damage):
    compiled(arm, folder)
    file = code_of(folder)
    data = file.read_bytes()
    file.write_bytes(data[:900] + bytes([data[900] ^ 1]) + data[901:]
                     if damage == 'flipped' else b'')
    assert compiled(arm, folder)
    assert str(file) in caplog.text
    assert not compiled(arm, folder)


def test_fault_58_a_full_disk_does_not_stop_the_program(arm, folder, caplog, monkeypatch):
    def replace(source, target):
        raise OSError(errno.ENOSPC, 'No space left on device')
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache.os, 'replace', replace)
        assert compiled(arm, folder)
    assert 'No space left on device' in caplog.text
    assert not list(folder.iterdir())
    assert compiled(arm, folder)
    assert not compiled(arm, folder)


def test_fault_58_code_that_others_can_write_is_not_run(arm, folder, caplog):
    compiled(arm, folder)
    folder.chmod(0o777)
    assert compiled(arm, folder)
    assert f'others own {folder} or can write to it' in caplog.text
    folder.chmod(0o755)
    assert not compiled(arm, folder)
    code_of(folder).chmod(0o666)
    assert compiled(arm, folder)
    # It was replaced by one of our own.
    assert not stat.S_IMODE(code_of(folder).stat().st_mode) & 0o022
    assert not compiled(arm, folder)


def test_two_processes_at_once_leave_complete_files(arm, folder):
    script = ('import numpy as np, rbd_ros\nfrom rbd_ros.codegen import load\n'
              f'arm = rbd_ros.load_urdf({ARM!r})\n'
              f'code = load(arm, {ONE!r}, directory={str(folder)!r})\n'
              'print(code.gravity_torques(np.ones(arm.nq)).tolist())\n')
    runs = [subprocess.Popen([sys.executable, '-c', script], stdout=subprocess.PIPE, text=True)
            for _ in range(2)]
    first, second = (run.communicate()[0] for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert first == second != ''
    assert len(list(folder.iterdir())) == 2     # no temporary ones


def test_without_a_compiler_load_raises_an_error_and_the_library_still_works(arm, folder,
                                                                             monkeypatch):
    for missing in ('no-such-compiler', 'no-such-compiler -O1'):
        monkeypatch.setenv('CC', missing)
        with pytest.raises(rbd_ros.errors.RbdError, match='there is no C compiler: '
                           'no-such-compiler: No such file or directory'):
            load(arm, ONE, directory=folder)
    assert np.all(np.isfinite(rbd_ros.gravity_torques(arm, np.ones(arm.nq))))
    assert not folder.exists()


def test_a_compiler_that_fails_is_quoted(arm, folder, tmp_path, monkeypatch):
    monkeypatch.setenv('CC', compiler(tmp_path, 'echo "fatal error: license expired" >&2; exit 3'))
    with pytest.raises(rbd_ros.errors.RbdError, match='compiler failed with exit code 3: fatal '
                       'error: license expired; set CC'):
        load(arm, ONE, directory=folder)
    # One that knows its version only.
    monkeypatch.setenv('CC', compiler(tmp_path, f'case "$*" in *-E*) exec {CC} "$@";; esac\n'
                       'echo "error: no space" >&2; exit 1') + ' ')
    machine_code._described.cache_clear()
    with pytest.raises(rbd_ros.errors.RbdError, match='failed with exit code 1: error: no space'):
        load(arm, ONE, directory=folder)
    assert not folder.exists()


def test_code_for_another_machine_is_refused_and_not_kept(arm, folder, tmp_path, monkeypatch):
    # As a cross-compiler for AArch64 does: the machine is in bytes 18 and 19 of ELF.
    monkeypatch.setenv('CC', compiler(
        tmp_path, f'{CC} "$@" || exit 1\nwhile [ "$1" != "-o" ]; do [ $# = 0 ] && exit; shift; '
        'done\nprintf "\\267\\000" | dd of="$2" bs=1 seek=18 conv=notrunc 2>/dev/null'))
    with pytest.raises(rbd_ros.errors.RbdError, match=r'cannot be loaded: .*; set CC to a '
                       'compiler for this machine'):
        load(arm, ONE, directory=folder)
    # Of the module for Python it is found out when it is used.
    assert all(b'PyInit_' in file.read_bytes() for file in folder.iterdir())


def test_a_compiler_that_does_not_know_this_processor_is_used(arm, folder, tmp_path, monkeypatch):
    monkeypatch.setenv('CC', compiler(
        tmp_path, f'case "$*" in *native*) exit 1;; esac\nexec {CC} "$@"'))
    assert compiled(arm, folder)
