# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever state the files of compiled kernels are in, kernels work; rows 58 of doc/faults.md."""

import errno
import grp
import hashlib
import os
from pathlib import Path
import pwd
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pytest
import rbd_ros
from rbd_ros.kernels.jit import compiled, kernel_cache
from rbd_ros.kernels.jit.kernel_cache import cache_directory, Directory

numba = pytest.importorskip('numba')
PACKAGE = Path(kernel_cache.__file__).parents[2]
ARM = Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf'
# A user that no table of users knows.
NOBODY = 54321
X = np.arange(3.0)


def add_one(x):
    """Be a kernel."""
    return x[0] + x[2] + 1.0


def add_two(x):
    """Be another, with arguments alike."""
    return x[0] + x[2] + 2.0


@pytest.fixture
def process(tmp_path, monkeypatch):
    """
    Return a function that makes a kernel as a new process would.

    It returns the kernel's result, and whether it was compiled.
    """
    def start(function=add_one, path=tmp_path / 'cache'):
        monkeypatch.setattr(compiled, '_directory', Directory(path))
        made = compiled.kernel(function)
        compiled.prepare(made, X)
        return made(X), not made.stats.cache_hits

    return start


def the_file(tmp_path):
    """Return the one file of the cache."""
    file, = (tmp_path / 'cache').iterdir()
    return file


def test_a_kernel_is_compiled_once(process, tmp_path, caplog):
    assert process() == (3.0, True)
    assert process() == (3.0, False)
    assert process(add_two) == (4.0, True)
    assert len(list((tmp_path / 'cache').iterdir())) == 2
    assert process(add_two) == (4.0, False)
    assert not caplog.messages


def test_a_process_that_compiles_nothing_imports_no_linear_algebra_of_the_compiler():
    # The kernel is in the cache afterwards.
    arm = rbd_ros.load_urdf(ARM)
    rbd_ros.gravity_torques(arm, np.ones(arm.nq))
    script = ('import sys, numba, numpy as np, rbd_ros\n'
              f'arm = rbd_ros.load_urdf({str(ARM)!r})\n'
              'rbd_ros.gravity_torques(arm, np.ones(arm.nq))\n'
              'print([x for x in ("scipy.linalg", "numba.np.linalg") if x in sys.modules])\n'
              # Programs that compile functions of their own have all of numba afterwards.
              'print(numba.njit(lambda A: np.dot(A, A[0]))(2.0 * np.eye(2)).tolist())\n')
    run = subprocess.run([sys.executable, '-c', script], check=True, capture_output=True,
                         text=True)
    assert run.stdout.splitlines() == ['[]', '[4.0, 0.0]']


@pytest.mark.parametrize('damage', ['empty', 'truncated', 'flipped', 'text', 'longer'])
def test_fault_58_a_damaged_file_is_replaced(process, tmp_path, caplog, damage):
    process()
    file = the_file(tmp_path)
    data = file.read_bytes()
    file.write_bytes({
        'empty': b'', 'truncated': data[:len(data) // 2], 'text': b'hello\n',
        'flipped': data[:500] + bytes([data[500] ^ 1]) + data[501:],
        'longer': data + b'\0'}[damage])
    assert process() == (3.0, True)
    assert str(file) in caplog.text
    assert len(caplog.messages) == 1
    assert process() == (3.0, False)


def test_fault_58_a_file_of_another_kernel_is_not_taken_for_this_one(process, tmp_path, caplog):
    process(add_two)
    other = the_file(tmp_path)
    process()
    mine, = set((tmp_path / 'cache').iterdir()) - {other}
    shutil.copy(other, mine)
    assert process() == (3.0, True)
    assert 'another file' in caplog.text


def test_fault_58_an_undamaged_file_that_cannot_be_loaded_is_replaced(process, tmp_path, caplog):
    process()
    file, data = the_file(tmp_path), b'no pickle'
    file.write_bytes(hashlib.sha256(file.name.encode() + b'\0' + data).digest() + data)
    assert process() == (3.0, True)
    assert 'UnpicklingError' in caplog.text
    assert process() == (3.0, False)


def test_fault_58_a_full_disk_does_not_stop_the_program(process, tmp_path, caplog, monkeypatch):
    def replace(source, target):
        raise OSError(errno.ENOSPC, 'No space left on device')
    with monkeypatch.context() as patch:
        patch.setattr(kernel_cache.os, 'replace', replace)
        assert process() == (3.0, True)
    assert 'No space left on device' in caplog.text
    assert not list((tmp_path / 'cache').iterdir())
    assert process() == (3.0, True)
    assert process() == (3.0, False)


@pytest.mark.parametrize('where, name', [
    (numba.core.compiler.CompileResult, '_reduce'), (numba.core.serialize, 'dumps'),
    (numba.core.codegen.CPUCodegen, 'magic_tuple')])
def test_fault_58_a_numba_with_changed_internals_runs_without_files(process, tmp_path, caplog,
                                                                    monkeypatch, where, name):
    monkeypatch.delattr(where, name)
    assert process() == (3.0, True)
    assert process() == (3.0, True)
    assert 'this version of numba cannot serialize' in caplog.messages[0]
    assert not (tmp_path / 'cache').exists()


def test_fault_58_a_directory_that_cannot_be_created_is_logged_once(process, tmp_path, caplog):
    (tmp_path / 'file').write_text('')
    assert process(path=tmp_path / 'file' / 'cache') == (3.0, True)
    assert len(caplog.messages) == 1
    assert str(tmp_path / 'file') in caplog.text


def test_fault_58_files_that_others_can_write_are_not_read(process, tmp_path, caplog):
    process()
    for path, mode in ((tmp_path / 'cache', 0o777), (tmp_path / 'cache', 0o770),
                       (tmp_path / 'cache', 0o1777)):
        path.chmod(mode)
        assert process() == (3.0, True)
        assert f'others own {tmp_path / "cache"} or can write to it' in caplog.text
        path.chmod(0o755)
        assert process() == (3.0, False)
        caplog.clear()
    the_file(tmp_path).chmod(0o666)
    assert process() == (3.0, True)
    # It was replaced by one of our own.
    assert process() == (3.0, False)


@pytest.mark.parametrize('above, mode, user, used', [
    ('cache', 0o777, 0, False), ('cache', 0o775, 0, False), ('cache', 0o757, 0, False),
    ('cache', 0o1777, 0, True), ('cache', 0o755, NOBODY, False), ('cache', 0o1777, NOBODY, False),
    ('link', 0o777, 0, False), ('link', 0o1777, 0, True), ('target', 0o777, 0, False),
    ('target', 0o755, NOBODY, False), ('target', 0o1777, 0, True)])
def test_fault_58_no_file_is_written_below_a_directory_of_others(
        process, open_folder, caplog, above, mode, user, used):
    if user and os.geteuid():
        pytest.skip('only root can give files to others')
    where = open_folder / above
    (where / 'rbd_ros').mkdir(parents=True)
    path = where / 'rbd_ros' / 'digest'
    if above == 'link':
        # Who can write there can lead it elsewhere.
        (open_folder / 'real').mkdir()
        path = where / 'here' / 'digest'
        (where / 'here').symlink_to(open_folder / 'real')
    elif above == 'target':
        path = open_folder / 'here' / 'digest'
        (open_folder / 'here').symlink_to(where / 'rbd_ros')
    assert process(path=path) == (3.0, True)
    assert process(path=path) == (3.0, False)
    os.chmod(where, mode)
    os.chown(where, user or os.geteuid(), -1)
    assert process(path=path) == (3.0, not used)
    assert (f'others own {where} or can write to it' in caplog.text) is not used


def test_fault_58_a_private_group_may_write_above_the_cache(
        process, open_folder, monkeypatch):
    path = open_folder / 'above' / 'rbd_ros'
    path.mkdir(parents=True)
    process(path=path)
    os.chmod(open_folder / 'above', 0o775)
    assert process(path=path) == (3.0, True)
    monkeypatch.setattr(kernel_cache, 'private_group',
                        lambda: os.stat(open_folder / 'above').st_gid)
    assert process(path=path) == (3.0, False)
    os.chmod(path, 0o775)
    assert process(path=path) == (3.0, True)


@pytest.mark.parametrize('name, members, expected', [
    ('me', [], 77), ('me', ['me'], 77), ('us', [], None), ('me', ['me', 'you'], None)])
def test_a_group_is_private_if_it_has_one_member(monkeypatch, name, members, expected):
    monkeypatch.setattr(pwd, 'getpwuid', lambda _: pwd.struct_passwd(
        ('me', 'x', 1234, 77, '', '/', '/bin/sh')))
    monkeypatch.setattr(grp, 'getgrgid', lambda gid: grp.struct_group(
        (name, 'x', gid, members)))
    assert kernel_cache.private_group() == expected


def test_fault_58_the_cache_is_used_with_any_umask(process, tmp_path, caplog):
    before = os.umask(0)
    try:
        assert process(path=tmp_path / 'a' / 'b' / 'c') == (3.0, True)
        assert process(path=tmp_path / 'a' / 'b' / 'c') == (3.0, False)
    finally:
        os.umask(before)
    assert not caplog.messages


def test_fault_58_links_are_not_followed(process, tmp_path):
    process()
    file = the_file(tmp_path)
    shutil.move(file, tmp_path / 'elsewhere')
    file.symlink_to(tmp_path / 'elsewhere')
    assert process() == (3.0, True)


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can give files to others')
def test_fault_58_files_that_others_own_are_not_read(process, tmp_path, caplog):
    process()
    os.chown(tmp_path / 'cache', NOBODY, NOBODY)
    assert process() == (3.0, True)
    assert f'others own {tmp_path / "cache"}' in caplog.text
    os.chown(tmp_path / 'cache', 0, 0)
    os.chown(the_file(tmp_path), NOBODY, NOBODY)
    assert process() == (3.0, True)


def test_the_cache_directory_follows_the_environment(monkeypatch):
    monkeypatch.setattr(kernel_cache.numba.config, 'CACHE_DIR', '')
    monkeypatch.setenv('XDG_CACHE_HOME', '/var/cache/me')
    assert cache_directory().parent == Path('/var/cache/me/rbd_ros')
    monkeypatch.setenv('XDG_CACHE_HOME', 'relative')
    monkeypatch.setenv('HOME', '/home/me')
    assert cache_directory().parent == Path('/home/me/.cache/rbd_ros')
    monkeypatch.setattr(kernel_cache.numba.config, 'CACHE_DIR', '/numba')
    assert cache_directory().parent == Path('/numba/rbd_ros')
    monkeypatch.setattr(kernel_cache.numba.config, 'CACHE_DIR', '')
    monkeypatch.setattr(kernel_cache.os.path, 'expanduser', lambda path: path)
    assert cache_directory() is None


def test_all_compiled_functions_are_in_rbd_ros_kernels():
    compiled = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob('*.py')
                if re.search(r'^ *@(kernel|helper|long_kernel|intrinsic)\b', path.read_text(),
                             re.MULTILINE)}
    assert compiled == {'kernels'}


def test_the_directory_follows_every_file_of_the_kernels(tmp_path, monkeypatch):
    copy = shutil.copytree(PACKAGE / 'kernels', tmp_path / 'kernels')
    monkeypatch.setattr(kernel_cache, '__file__', str(copy / 'jit' / 'kernel_cache.py'))
    sources, seen = sorted(copy.rglob('*.py')), {cache_directory()}
    assert sources and cache_directory() in seen
    for source in sources:
        before = len(seen)
        source.write_text(source.read_text() + '# changed')
        seen.add(cache_directory())
        assert len(seen) > before, source


SCRIPT = """
import os, sys
import graphlib, lxml.etree, numba, numpy as np, queue, scipy.linalg, shlex, urdf_parser_py.urdf
# The interpreter itself may lie where another user cannot read it: what it needs is loaded before.
numba.njit(lambda x: x[0] + 1.0)(np.ones(1))
os.setuid({user})
import rbd_ros
from rbd_ros.kernels.newton_euler import newton_euler_at_rest
robot = rbd_ros.load_urdf_string({urdf!r})
print(*rbd_ros.gravity_torques(robot, np.ones(robot.nq)).tolist())
print('compiled' if not newton_euler_at_rest.stats.cache_hits else 'loaded')
"""


@pytest.fixture
def open_folder():
    """Return a folder that others can read; pytest's are closed by whoever runs it next."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason='only root can become another user')
def test_fault_58_a_user_without_a_home_or_a_name_runs_uncached_or_from_an_image(open_folder):
    def run(user, **environment):
        environment = {**os.environ, **environment}
        for name in ('HOME', 'XDG_CACHE_HOME'):
            if environment.get(name) == os.environ.get(name):
                environment.pop(name, None)
        result = subprocess.run(
            [sys.executable, '-c', SCRIPT.format(user=user, urdf=ARM.read_text())],
            env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        torques, how = result.stdout.splitlines()
        return torques, how, result.stderr

    torques, how, said = run(NOBODY)
    assert how == 'compiled'
    assert 'there is no home directory' in said
    image = str(open_folder / 'image')
    assert run(0, XDG_CACHE_HOME=image)[:2] == (torques, 'compiled')
    # Read by one who can write nothing there.
    assert run(NOBODY, XDG_CACHE_HOME=image) == (torques, 'loaded', '')
    # What another user has written is not believed by root either.
    for path in (Path(image), *Path(image).rglob('*')):
        os.chown(path, NOBODY, NOBODY)
    _, how, said = run(0, XDG_CACHE_HOME=image)
    assert how == 'compiled'
    assert f'others own {image}' in said
