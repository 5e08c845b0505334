# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""MJCF files as texts that can be compiled anywhere on the machine, such as by other nodes."""

from os import PathLike
from pathlib import Path

from lxml import etree
from rbd_ros.errors import ModelError
from rbd_ros.model.files.urdf import read_file
from rbd_ros.model.files.xml_elements import decode, parse_xml

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
