# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Cache of compiled kernels on disk; kernels work whatever the state of its files.

Benefit: kernels are compiled once, not for one to two minutes in every process. numba's own cache
ends the program if a file is damaged, the disk is full or no directory is writable, and it trusts
anybody's files, although pickles are code.
Safeguard: files begin with a digest and are read only if nobody else can write to them. After any
other problem, which is logged once, kernels are compiled in memory.
Risk: it has the interface of numba's caches and calls numba's serialization (tried from 0.58 to
0.68). If these change, kernels are compiled in memory.

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

from rbd_ros.kernels.jit.numba_backend import COMPILES

if COMPILES:
    import llvmlite
    import numba

# Permissions that let others write.
_OTHERS_WRITE = 0o022
_log = logging.getLogger('rbd_ros')


def cache_directory() -> Path | None:
    """
    Return the directory of this version's compiled kernels, which need not exist.

    Its name has a digest of all sources, because a kernel depends on helpers in other files.

    """
    digest = hashlib.sha256()
    for source in sorted(Path(__file__).parents[1].rglob('*.py')):
        digest.update(source.read_bytes())
    root = cache_root()
    return None if root is None else root / digest.hexdigest()[:16]


def cache_root() -> Path | None:
    """
    Return the directory of all machine code, which need not exist; None without a home.

    It is below ``$NUMBA_CACHE_DIR``, ``$XDG_CACHE_HOME`` or ``~/.cache``.

    """
    root = (numba.config.CACHE_DIR if COMPILES else '') or os.environ.get('XDG_CACHE_HOME', '')
    if not os.path.isabs(root):
        # Without an account for the user id, the home directory remains '~'.
        root = os.path.join(os.path.expanduser('~'), '.cache')
    return Path(root, 'rbd_ros') if os.path.isabs(root) else None


class KernelCache:
    """The compiled forms of one kernel, with the interface of numba's caches."""

    def __init__(self, function: Callable[..., Any], directory: 'Directory',
                 elsewhere: Callable[..., bytes | None]) -> None:
        self._function, self._directory = function, directory
        # Compiles the function for types of arguments as `serialized` returns it, or returns None.
        self._elsewhere = elsewhere

    @property
    def cache_path(self) -> str:
        """Return the directory, for numba's statistics."""
        return str(self._directory.path)

    def _file_name(self, types: Any, target_context: Any) -> str:
        """Return the name of the file for argument types, this processor and these tools."""
        key = repr((types, target_context.codegen().magic_tuple(), numba.__version__,
                    llvmlite.__version__, platform.python_version()))
        module = self._function.__module__.rpartition('.')[2]
        return (f'{module}.{self._function.__qualname__}-'
                f'{hashlib.sha256(key.encode()).hexdigest()[:24]}.kernel')

    def _known(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Call what relies on numba's serialization; return None if that has changed."""
        try:
            return call(*arguments)
        except Exception as error:
            self._directory.give_up(
                f'this version of numba cannot serialize compiled kernels as expected: {error!r}')
            return None

    def holds(self, types: Any, target_context: Any) -> bool:
        """Return whether there is a compiled form for argument types."""
        name = self._known(self._file_name, types, target_context)
        return name is not None and self._directory.read(name) is not None

    def load_overload(self, types: Any, target_context: Any) -> Any:
        """Return the compiled form for argument types; None if it has to be compiled here."""
        name = self._known(self._file_name, types, target_context)
        if name is None:
            return None
        data = self._directory.read(name)
        if data is None:
            data = self._elsewhere(self._function, types)
            if data is None:
                return None
            self._directory.write(name, data)
        try:
            from numba.core.compiler import CompileResult
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception as error:
            # Undamaged but unusable, perhaps from another build of numba.
            self._directory.remove(name, repr(error))
            return None

    def save_overload(self, types: Any, result: Any) -> None:
        """Write a compiled form to its file."""
        name = self._known(self._file_name, types, result.target_context)
        data = name and self._known(serialized, result)
        if data:
            self._directory.write(name, data)


class Directory:
    """Files that only this user can write; unused after a problem, which is logged once."""

    def __init__(self, path: Path | None) -> None:
        self.path, self._readable, self._writable = path, path is not None, path is not None
        self._checked = False
        if path is None:
            _log.warning('there is no home directory: kernels are recompiled in every process; '
                         'set XDG_CACHE_HOME to a directory of your own')

    def give_up(self, reason: str | None) -> None:
        """Log the reason, once, and stop using the directory."""
        if self._readable or self._writable:
            _log.warning('kernels are compiled in memory, %s is not used: %s', self.path, reason)
        self._readable = self._writable = False

    def _is_trusted(self, path: Path) -> bool:
        """Return whether files may be read, checked once the directory exists."""
        if self._readable and not self._checked:
            try:
                foreign, self._checked = not_ours(path), path.exists()
            except OSError as error:
                self.give_up(error.strerror)
            else:
                if foreign is not None:
                    self.give_up(
                        f'others own {foreign} or can write to it, and kernels are code; remove '
                        'it, or withdraw their permission to write (chmod go-w), or set '
                        'XDG_CACHE_HOME')
        return self._readable

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None if it is missing or damaged."""
        if self.path is None or not self._is_trusted(self.path):
            return None
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | os.O_NOFOLLOW)
            with open(descriptor, 'rb') as file:
                if not is_ours(os.fstat(descriptor)):
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
        """Remove an unusable file."""
        if self.path is None:
            return
        _log.warning('recompiling a kernel: %s: %s', self.path / name, reason)
        with suppress(OSError):
            # Otherwise the file is replaced when the kernel is written again.
            (self.path / name).unlink()

    def write(self, name: str, data: bytes) -> None:
        """Write a file atomically, if possible."""
        if self.path is None or not self._writable:
            return
        temporary = None
        try:
            # Whatever the umask, others can read it (one user builds a container image, another
            # runs it) but not write to it.
            for directory in (*reversed(self.path.parents), self.path):
                with suppress(FileExistsError):
                    os.mkdir(directory, 0o755)
            if not self._is_trusted(self.path):
                return
            descriptor, temporary = tempfile.mkstemp(dir=self.path)
            with open(descriptor, 'wb') as file:
                os.fchmod(descriptor, 0o644)
                file.write(_digest(name, data) + data)
            os.replace(temporary, self.path / name)
        except OSError as error:
            # The disk is full or read-only; existing files can still be read.
            self._writable = False
            _log.warning('compiled kernels are not kept in %s: %s', self.path, error.strerror)
            if temporary is not None:
                with suppress(OSError):
                    os.unlink(temporary)


def serialized(result: Any) -> bytes | None:
    """Return a compiled form as bytes; None if it contains addresses of this process."""
    from numba.core.serialize import dumps
    if result.library.has_dynamic_globals or any(not one.can_cache for one in result.lifted):
        return None
    data: bytes = dumps(result._reduce())
    return data


def _digest(name: str, data: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b'\0' + data).digest()


def not_ours(path: Path) -> Path | None:
    """
    Return the directory through which others could replace our files, or None.

    That is `path`, which need not exist, or a parent that others own or can write to. They may
    write to a sticky parent, as ``/tmp``, and the `private_group` to any parent.

    """
    # Including the target of links.
    target = Path(os.path.realpath(path))
    for directory in dict.fromkeys((path, *path.parents, *target.parents)):
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
    """Return the group with this user's name and no other member, or None."""
    # With such groups, directories are often group-writable (umask 002).
    try:
        import grp
        import pwd
        user = pwd.getpwuid(os.geteuid())
        group = grp.getgrgid(user.pw_gid)
    except (ImportError, KeyError):     # unknown user, or Python's library is not readable
        return None
    private = group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
    return user.pw_gid if private and user.pw_uid else None


def is_ours(status: os.stat_result, allowed: int = 0) -> bool:
    """Return whether this user or root owns a file and others cannot write to it."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & _OTHERS_WRITE & ~allowed
