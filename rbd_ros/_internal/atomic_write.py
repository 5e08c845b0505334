# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written completely or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
import os
from pathlib import Path
import tempfile

from rbd_ros.errors import RbdError


@contextmanager
def whole_files(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """
    Context manager: yield paths in a temporary directory, and move the files there on success.

    If anything fails, Ctrl-C included, existing files stay. Each file is replaced atomically, one
    after the other; all are in one directory, which is created if missing. Errors are OSError and
    those of `check_places`.

    """
    places = check_places(*paths)
    directory = places[0].parent
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix='.rbd_ros-') as temporary:
        drafts = [Path(temporary, place.name) for place in places]
        yield drafts
        for draft, place in zip(drafts, places):
            os.replace(draft, place)


def check_places(*paths: str | os.PathLike[str]) -> list[Path]:
    """
    Return the absolute paths of files that are to be written, to fail before long work.

    Raise RbdError if a path exists but is not a regular file, or its parent is not a writable
    directory. Missing directories are not created yet.

    """
    places = [Path(path).expanduser().resolve() for path in paths]
    for place in places:
        if place.exists() and not place.is_file():
            raise RbdError(f'{place} is not a file and will not be replaced; choose another name')
        there = next(parent for parent in place.parents if parent.exists())
        if not there.is_dir():
            raise RbdError(f'{there} is not a directory; choose another one')
        try:
            # Permissions alone say nothing about full, read-only and virtual file systems.
            tempfile.TemporaryFile(dir=there).close()
        except OSError as error:
            raise RbdError(f'{there} cannot be written to ({error.strerror}); choose another '
                           'directory') from None
    return places
