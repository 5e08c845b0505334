# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the files of meshes that a URDF names, as ROS does."""

from collections.abc import Iterator, Sequence
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Files that are opened as meshes.
SUFFIXES = ('.dae', '.stl', '.obj', '.ply', '.glb', '.gltf')


class MeshError(Exception):
    """A mesh cannot be read; the message says why, and what to do about it."""


class MeshFinder:
    """
    Finds the files of meshes.

    Meshes at package:// are looked for in the folders of packages that are given, then in those of
    AMENT_PREFIX_PATH and ROS_PACKAGE_PATH, then in the folders above the URDF; others relative to
    the URDF.

    Parameters
    ----------
    folder : Path or None
        The folder of the URDF; None: it is not from a file.
    package_path : sequence of path-like
        Folders that have packages inside.

    """

    def __init__(self, folder: Path | None = None,
                 package_path: Sequence[str | os.PathLike[str]] = ()) -> None:
        self._folder = folder
        above = () if folder is None else (folder.resolve(), *folder.resolve().parents)
        self._before = tuple(map(Path, package_path))
        self._after = (*map(Path, _folders('ROS_PACKAGE_PATH')), *above)

    def _packages(self, name: str) -> Iterator[Path]:
        """Yield the places where a package may be."""
        shares = tuple(Path(prefix) / 'share' for prefix in _folders('AMENT_PREFIX_PATH'))
        for folder in self._before + shares + self._after:
            yield folder / name
            if folder.name == name:
                yield folder

    def find(self, name: str) -> Path:
        """
        Return the file of a mesh.

        Parameters
        ----------
        name : str
            As the URDF has it: package://, file://, or a path.

        Raises
        ------
        MeshError
            If there is none, or it is no mesh.

        """
        url = urlsplit(name)
        path = unquote(url.path)
        if Path(path).suffix.lower() not in SUFFIXES:
            raise MeshError(f'only {", ".join(SUFFIXES)} are read as meshes')
        if url.scheme == 'package':
            places = [package / path.lstrip('/') for package in self._packages(url.netloc)]
            reason = (f"there is no package '{url.netloc}' that has it; name the folder that the "
                      'package is in with --package-path, or package_path of the node')
        elif url.scheme == 'file' or (not url.scheme and Path(path).is_absolute()):
            places, reason = [Path(path)], 'there is no such file'
        elif url.scheme or self._folder is None:
            raise MeshError('only package:// and file:// are read'
                            + ('' if url.scheme else ', for the URDF is not from a file'))
        else:
            places, reason = [self._folder / path], f'there is no such file in {self._folder}'
        for place in places:
            if place.is_file():
                return place
        raise MeshError(reason)


def _folders(variable: str) -> list[str]:
    """Return the folders in a variable of the environment."""
    return [folder for folder in os.environ.get(variable, '').split(os.pathsep) if folder]
