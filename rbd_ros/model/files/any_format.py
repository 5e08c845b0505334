# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read robots from descriptions in any supported format: URDF, xacro or MJCF."""

from collections.abc import Collection, Iterable
from os import PathLike
from pathlib import Path

from lxml import etree
import numpy.typing as npt
from rbd_ros.errors import ModelError
from rbd_ros.model.files.mjcf import is_mjcf, load_mjcf
from rbd_ros.model.files.urdf import load_urdf, load_urdf_string, read_file, SUFFIX
from rbd_ros.model.files.xml_elements import decode, parse_xml
from rbd_ros.model.model import Model, STANDARD_GRAVITY

# Folders of assets, which MuJoCo takes relative to the file.
_FOLDERS = ('assetdir', 'meshdir', 'texturedir')


def read_mjcf_file(path: str | PathLike[str]) -> str:
    """Return the text of an MJCF file with its includes, and with absolute paths of its assets."""
    folder, root = Path(path).resolve().parent, parse_xml(decode(read_file(path)))
    included = {Path(path).resolve()}
    while (element := next(root.iter('include'), None)) is not None:
        file = (folder / element.get('file', '')).resolve()
        if file in included:
            raise ModelError(f'{path}: it includes {file} twice')
        included.add(file)
        parent = element.getparent()
        assert parent is not None
        at = parent.index(element)
        parent[at:at + 1] = list(parse_xml(decode(read_file(file))))
    compilers = root.findall('compiler')
    given = {name for one in compilers for name in _FOLDERS if one.get(name) is not None}
    for one in compilers:
        for name in given.intersection(one.keys()):
            one.set(name, str(folder / one.get(name, '')))
    if 'assetdir' not in given:
        root.insert(0, etree.Element('compiler', dict.fromkeys(
            (name for name in _FOLDERS[1:] if name not in given), str(folder))))
    for element in root.iter('model'):
        element.set('file', str(folder / element.get('file', '')))
    return etree.tostring(root, encoding='unicode')


def is_mjcf_file(path: str | PathLike[str]) -> bool:
    """Return whether a file is MJCF; raise UrdfError if it cannot be read."""
    return Path(path).suffix != SUFFIX and is_mjcf(read_file(path))


def read_description(path: str | PathLike[str], xacro_arguments: Iterable[str] = ()) -> str:
    """Return the text of a robot's file as others take it: xacro expanded, MJCF with includes."""
    text = decode(read_file(path, xacro_arguments))
    return read_mjcf_file(path) if is_mjcf(text) else text


def load_file(path: str | PathLike[str], *, floating_base: bool = False,
              gravity: npt.ArrayLike | None = None, strict: bool = False,
              xacro_arguments: Iterable[str] = (), ignore: Collection[str] = ()) -> Model:
    """Return the robot of a file; arguments are those of `load_urdf` and `load_mjcf`."""
    if not xacro_arguments and is_mjcf_file(path):
        return _checked(load_mjcf(path, gravity=gravity, strict=strict, ignore=ignore),
                        floating_base)
    if ignore:
        raise ModelError(f'{path} is not MJCF: there is nothing to ignore')
    return load_urdf(path, floating_base=floating_base, strict=strict,
                     gravity=STANDARD_GRAVITY if gravity is None else gravity,
                     xacro_arguments=xacro_arguments)


def load_text(text: str, *, floating_base: bool = False, gravity: npt.ArrayLike | None = None,
              strict: bool = False, max_joints: int | None = None,
              ignore: Collection[str] = ()) -> Model:
    """Return the robot of a text; arguments are those of `load_urdf` and `load_mjcf`."""
    if is_mjcf(text):
        model = _checked(load_mjcf(text, gravity=gravity, strict=strict, ignore=ignore),
                         floating_base)
        if max_joints is not None and len(model.joints) > max_joints:
            raise ModelError(f'the robot has {len(model.joints)} joints, max_joints is '
                             f'{max_joints}: simplify it, or raise max_joints')
        return model
    if ignore:
        raise ModelError('the description is not MJCF: there is nothing to ignore')
    return load_urdf_string(text, floating_base=floating_base, strict=strict,
                            gravity=STANDARD_GRAVITY if gravity is None else gravity,
                            max_joints=max_joints)


def _checked(model: Model, floating_base: bool) -> Model:
    """Return a robot read from MJCF; raise ModelError if it should float but cannot."""
    if floating_base and not any(joint.kind == 'free' for joint in model.joints):
        raise ModelError(f"robot '{model.name}' has a fixed base: MJCF itself says which bodies "
                         'float; add a <freejoint/> to its first body')
    return model
