# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Files that are written completely or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
import os
from pathlib import Path
import tempfile

from rbd_ros.errors import RbdError


@contextmanager
def whole_files(*paths: str | os.PathLike[str]) -> Iterator[list[Path]]:
    """
    Let files be written, and move them to their places when all of them are complete.

    If anything goes wrong, Ctrl-C included, previous files stay. Missing directories are created.
    Files appear one after the other, each at once.

    Parameters
    ----------
    *paths : str or path-like
        Paths of the files, all in one directory.

    Yields
    ------
    list of Path
        Where to write them: in a temporary directory next to their places, with the same names.

    Raises
    ------
    RbdError
        If a path exists and is not a file, or its directory is none, or cannot be written to.
    OSError
        If writing fails.

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
    Return the full paths of files, or refuse them if they cannot be written: before long work.

    Parameters
    ----------
    *paths : str or path-like
        Paths of the files. Missing directories are not created yet.

    Returns
    -------
    list of Path
        The same, from the root.

    Raises
    ------
    RbdError
        If a path exists and is not a file, or its directory is none, or cannot be written to.

    """
    places = [Path(path).expanduser().resolve() for path in paths]
    for place in places:
        if place.exists() and not place.is_file():
            raise RbdError(f'{place} is not a file and will not be replaced; choose another name')
        there = next(parent for parent in place.parents if parent.exists())
        if not there.is_dir():
            raise RbdError(f'{there} is not a directory; choose another one')
        if not os.access(there, os.W_OK | os.X_OK):
            raise RbdError(f'{there} cannot be written to; choose another directory')
    return places
