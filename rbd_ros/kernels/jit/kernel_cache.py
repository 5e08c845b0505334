# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Compiled kernels on disk: whatever state the files are in, the kernels work.

What it gains: kernels are compiled once, not for up to a minute in every process. numba has a
cache of its own, but that ends the program if a file is damaged, the disk is full or no directory
can be written, and it trusts files whoever wrote them, although pickles are code.
What guards it: files begin with a digest, and are read only if nobody else can write to them. Any
other problem is logged once, and kernels are then compiled in memory.
What breaks it: it has the interface of numba's caches, and calls numba's own functions to
serialize what it has compiled (tried from 0.58 to 0.68). If those change, kernels are compiled in
memory.

"""

from collections.abc import Callable
from contextlib import suppress
import hashlib
import logging
import os
from pathlib import Path
import pickle
import platform
import stat
import tempfile
from typing import Any

from rbd_ros.kernels.jit.compiler import COMPILES

if COMPILES:
    import llvmlite
    import numba

UNKNOWN = 'this version of numba cannot serialize compiled kernels as expected'
# Permissions that let others write.
_OTHERS_WRITE = 0o022
_log = logging.getLogger('rbd_ros')


def cache_directory() -> Path | None:
    """
    Return the directory that holds this version's compiled kernels.

    Its name contains a digest of the kernels' sources, because a kernel depends on helpers in
    other files.

    Returns
    -------
    pathlib.Path or None
        Below ``$NUMBA_CACHE_DIR``, ``$XDG_CACHE_HOME`` or ``~/.cache``, whichever comes first; it
        need not exist. None where there is no home directory.

    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob('*.py')):
        digest.update(source.read_bytes())
    root = (numba.config.CACHE_DIR if COMPILES else '') or os.environ.get('XDG_CACHE_HOME', '')
    if not os.path.isabs(root):
        # If the user's number has no account, the home directory remains '~'.
        root = os.path.join(os.path.expanduser('~'), '.cache')
    return Path(root, 'rbd_ros', digest.hexdigest()[:16]) if os.path.isabs(root) else None


class KernelCache:
    """
    The compiled forms of one kernel, with the interface of numba's caches.

    Parameters
    ----------
    function : callable
        The kernel in Python.
    directory : Directory
        Where they are kept.

    """

    def __init__(self, function: Callable[..., Any], directory: 'Directory') -> None:
        self._name = f'{function.__module__.rpartition(".")[2]}.{function.__qualname__}'
        self._directory = directory
        self._made: dict[str, bytes] = {}

    @property
    def cache_path(self) -> str:
        """Return the directory, for numba's statistics."""
        return str(self._directory.path)

    def _file_name(self, signature: Any, codegen: Any) -> str:
        """Return the name of the file for argument types, this processor and these tools."""
        key = repr((signature, codegen.magic_tuple(), numba.__version__, llvmlite.__version__,
                    platform.python_version()))
        return f'{self._name}-{hashlib.sha256(key.encode()).hexdigest()[:24]}.kernel'

    def _name_for(self, signature: Any, target_context: Any) -> str | None:
        """Return the name of the file, None if this numba does not say what it depends on."""
        try:
            target_context.refresh()
            return self._file_name(signature, target_context.codegen())
        except Exception as error:
            self._directory.give_up(f'{UNKNOWN}: {error!r}')
            return None

    def holds(self, signature: Any, target_context: Any) -> bool:
        """Return whether there is a compiled form for argument types."""
        name = self._name_for(signature, target_context)
        return name is not None and self._directory.read(name) is not None

    def obtain(self, signature: Any, target_context: Any,
               make: Callable[[], bytes | None]) -> None:
        """Let another process make what `load_overload` returns, unless it is there."""
        name = self._name_for(signature, target_context)
        if name is None:
            return
        data = self._directory.read(name)
        if data is None:
            data = make()
            if data is not None:
                self._directory.write(name, data)
        if data is not None:
            self._made[name] = data

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """Return the compiled form for argument types, None if it has to be compiled."""
        name = self._name_for(signature, target_context)
        if name is None:
            return None
        data = self._made.pop(name, None) or self._directory.read(name)
        if data is None:
            return None
        try:
            from numba.core.compiler import CompileResult
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception as error:
            # Undamaged, but useless: perhaps from another build of the tools.
            self._directory.remove(name, repr(error))
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a compiled form."""
        try:
            name, data = self._file_name(signature, result.codegen), serialized(result)
        except Exception as error:
            self._directory.give_up(f'{UNKNOWN}: {error!r}')
            return
        if data is not None:
            self._directory.write(name, data)

    def enable(self) -> None:
        """Do nothing: the cache is always enabled."""

    def disable(self) -> None:
        """Do nothing: the cache cannot be disabled."""

    def flush(self) -> None:
        """Do nothing: the files belong to these sources."""


class Directory:
    """
    Files that begin with a digest of name and content, in a directory that nobody else can write.

    A problem is logged once, in one line; from then on files are neither read nor written.

    Parameters
    ----------
    path : pathlib.Path or None
        The directory; None: there is none.

    """

    def __init__(self, path: Path | None) -> None:
        self.path, self._readable, self._writable = path, path is not None, path is not None
        self._checked = False
        if path is None:
            _log.warning('there is no home directory: kernels are compiled anew in every process; '
                         'set XDG_CACHE_HOME to a directory of your own')

    def _check(self) -> None:
        """Find out once whether the directory can be trusted."""
        if self._checked or self.path is None or not self._readable:
            return
        try:
            theirs, self._checked = not_ours(self.path), self.path.exists()
        except OSError as error:
            self.give_up(error.strerror)
            return
        if theirs is not None:
            self.give_up(f'others own {theirs} or can write to it, and kernels are code; remove '
                         'it, or withdraw their permission to write (chmod go-w), or set '
                         'XDG_CACHE_HOME')

    def give_up(self, reason: str | None) -> None:
        """Log the reason, once, and stop using the directory."""
        if not (self._readable or self._writable):
            return
        self._readable = self._writable = False
        _log.warning('kernels are compiled in memory, %s is not used: %s', self.path, reason)

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if it is missing or damaged."""
        self._check()
        if self.path is None or not self._readable:
            return None
        try:
            number = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW)
            with open(number, 'rb') as file:
                if not is_ours(os.fstat(number)):
                    return None
                data = file.read()
        except OSError:
            return None
        digest, data = data[:32], data[32:]
        if _digest(name, data) != digest:
            self.remove(name, 'it is damaged, or was another file')
            return None
        return data

    def remove(self, name: str, reason: str) -> None:
        """Remove a file that is useless."""
        if self.path is None:
            return
        _log.warning('a kernel is compiled anew: %s: %s', self.path / name, reason)
        with suppress(OSError):
            # If that fails, the file is replaced at the next opportunity.
            (self.path / name).unlink()

    def write(self, name: str, data: bytes) -> None:
        """Write a file as a whole, if that is possible."""
        if self.path is None or not self._writable:
            return
        temporary = None
        try:
            # Others may read it: one user builds a container image, another runs it. Whatever the
            # umask, they cannot write to it.
            for directory in (*reversed(self.path.parents), self.path):
                with suppress(FileExistsError):
                    os.mkdir(directory, 0o755)
            self._check()
            if not self._writable:
                return
            number, temporary = tempfile.mkstemp(dir=self.path)
            with open(number, 'wb') as file:
                os.fchmod(number, 0o644)
                file.write(_digest(name, data) + data)
            os.replace(temporary, self.path / name)
        except OSError as error:
            # The disk may be full or read-only; existing files can still be read.
            self._writable = False
            _log.warning('compiled kernels are not kept in %s: %s', self.path, error.strerror)
            if temporary is not None:
                with suppress(OSError):
                    os.unlink(temporary)


def serialized(result: Any) -> bytes | None:
    """Return a compiled form as bytes, None if it contains addresses of this process."""
    from numba.core.serialize import dumps
    if result.library.has_dynamic_globals or any(not one.can_cache for one in result.lifted):
        return None
    data: bytes = dumps(result._reduce())
    return data


def _digest(name: str, data: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b'\0' + data).digest()


def not_ours(path: Path) -> Path | None:
    """
    Return the directory in which others could put files in place of ours, or None.

    Parameters
    ----------
    path : pathlib.Path
        The directory of the files, which need not exist.

    Returns
    -------
    pathlib.Path or None
        This directory or one above it, if it belongs to somebody else, or others can write to it.
        Above it, they may where nobody can rename what belongs to others, as in ``/tmp``, and the
        `private_group` may.

    Raises
    ------
    OSError
        If a directory cannot be looked at.

    """
    # Where a link leads, too.
    leads_to = Path(os.path.realpath(path))
    for directory in dict.fromkeys((path, *path.parents, *leads_to.parents)):
        with suppress(FileNotFoundError):
            status = os.stat(directory)
            safe = 0
            if directory != path:
                safe = _OTHERS_WRITE if status.st_mode & stat.S_ISVTX else 0
                safe |= stat.S_IWGRP if status.st_gid == private_group() else 0
            if not is_ours(status, safe):
                return directory
    return None


def private_group() -> int | None:
    """
    Return the group that has this user's name and no other member; None if there is none.

    With a umask of 002, as it is common where every user has such a group, directories are
    writable by the group.

    """
    try:
        import grp
        import pwd
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except (ImportError, KeyError):     # no such user, or one who cannot read Python's library
        return None
    alone = group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return user.pw_gid if alone and user.pw_uid else None


def is_ours(status: os.stat_result, allowed: int = 0) -> bool:
    """Return whether this user or root owns something and others cannot write to it."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_WRITE & ~allowed
