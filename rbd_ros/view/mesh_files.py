# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Find the mesh files named by a URDF, as ROS does."""

from collections.abc import Sequence
import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

SUFFIXES = ('.dae', '.stl', '.obj', '.ply', '.glb', '.gltf')    # of meshes; others are not opened


class MeshError(Exception):
    """A mesh cannot be read; the message gives the reason and a remedy."""


class MeshFinder:
    """
    Finds mesh files.

    Meshes at package:// are searched in the given folders of packages, in AMENT_PREFIX_PATH and
    ROS_PACKAGE_PATH, then in the folders above the URDF; other names are relative to `folder`,
    that of the URDF (None: it was not read from a file).

    """

    def __init__(self, folder: Path | None = None,
                 package_path: Sequence[str | os.PathLike[str]] = ()) -> None:
        self._folder = folder
        above = () if folder is None else (folder.resolve(), *folder.resolve().parents)
        self._search = [*map(Path, package_path),
                        *(Path(prefix) / 'share' for prefix in _folders('AMENT_PREFIX_PATH')),
                        *map(Path, _folders('ROS_PACKAGE_PATH')), *above]

    def find(self, name: str) -> Path:
        """Return the path of a mesh given as package://, file:// or a path, or raise MeshError."""
        url = urlsplit(name)
        path = unquote(url.path)
        if Path(path).suffix.lower() not in SUFFIXES:
            raise MeshError(f'only {", ".join(SUFFIXES)} are read as meshes')
        if url.scheme == 'package':
            # A folder on the search path contains the package, or is the package itself.
            places = [package / path.lstrip('/') for folder in self._search
                      for package in (folder / url.netloc, folder) if package.name == url.netloc]
            reason = (f"there is no package '{url.netloc}' that contains it; give the folder of "
                      'the package by --package-path or the parameter package_path')
        elif url.scheme == 'file' or (not url.scheme and Path(path).is_absolute()):
            places, reason = [Path(path)], 'there is no such file'
        elif url.scheme or self._folder is None:
            raise MeshError('only package:// and file:// are read'
                            + ('' if url.scheme else ': the URDF was not read from a file'))
        else:
            places, reason = [self._folder / path], f'there is no such file in {self._folder}'
        for place in places:
            if place.is_file():
                return place
        raise MeshError(reason)


def _folders(variable: str) -> list[str]:
    return [folder for folder in os.environ.get(variable, '').split(os.pathsep) if folder]
