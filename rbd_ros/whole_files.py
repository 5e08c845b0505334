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
        If a path exists and is not a file.
    OSError
        If the directory cannot be written to.

    """
    places = [Path(path).expanduser().resolve() for path in paths]
    for place in places:
        if place.exists() and not place.is_file():
            raise RbdError(f'{place} is not a file and will not be replaced; choose another name')
    directory = places[0].parent
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory, prefix='.rbd_ros-') as temporary:
        drafts = [Path(temporary, place.name) for place in places]
        yield drafts
        for draft, place in zip(drafts, places):
            os.replace(draft, place)
