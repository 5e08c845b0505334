# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reads URDF and xacro: `urdf_document` reads links and joints, the rest is checked here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from os import PathLike
from pathlib import Path

from lxml import etree
import numpy.typing as npt
from rbd_ros._internal.text import did_you_mean, listed, printable
from rbd_ros.errors import ModelError, named, UrdfError
from rbd_ros.kernels.tree.columns import FREE, KIND, PARENT
from rbd_ros.model.arguments import shown, whole_number
from rbd_ros.model.changes.modifications import payload_name, with_floating_base
from rbd_ros.model.constraints import with_constraints
from rbd_ros.model.files.constraint_elements import constraints_of
from rbd_ros.model.files.urdf_contents import ignored_contents, read_rotors
from rbd_ros.model.files.urdf_document import describe, document_of
from rbd_ros.model.files.xml_elements import decode, LARGEST_TEXT, parse
from rbd_ros.model.model import build_tree, Model, STANDARD_GRAVITY, warned
from rbd_ros.model.plausibility import nothing_to_compute, point_masses
from urdf_parser_py import urdf as parser

SUFFIX = '.xacro'


class _Arguments(dict[str, str]):
    """Arguments of a xacro file, which ignores those it does not ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_for = set[str]()

    def __contains__(self, name: object) -> bool:
        self.asked_for.add(str(name))
        return super().__contains__(name)


# What helps against errors of xacro with these words.
_HINTS = {'Undefined substitution argument': 'give it as NAME:=VALUE by --xacro-args or '
                                             'xacro_arguments',
          'PackageNotFoundError': 'source the workspace that contains the package'}


def expand_xacro(path: str | PathLike[str], arguments: Iterable[str] = ()) -> str:
    """Return the URDF that xacro makes of a file; raise UrdfError if it fails or is missing."""
    mappings = _Arguments()
    for argument in arguments:
        name, mark, value = argument.partition(':=')
        if not mark or not name:
            raise UrdfError('arguments of xacro are name:=value, got '
                            f"'{printable(argument, 120)}'")
        mappings[name] = value
    given = list(mappings)
    try:
        import xacro
    except ImportError:
        raise UrdfError('the file needs xacro: pip install xacro, or sudo apt install '
                        'ros-$ROS_DISTRO-xacro') from None
    try:
        text = str(xacro.process_file(str(path), mappings=mappings).toxml())
    except Exception as error:          # of any kind: a file may evaluate whatever it likes
        hint = next((f'; {hint}' for mark, hint in _HINTS.items() if mark in str(error)), '')
        raise UrdfError(f'xacro failed: {type(error).__name__}: '
                        f'{printable(str(error))}{hint}') from None
    if unknown := [name for name in given if name not in mappings.asked_for]:
        known = sorted(mappings.asked_for)
        raise UrdfError(f"the file has no xacro argument '{printable(unknown[0], 120)}'"
                        + did_you_mean(unknown[0], known, ', only ' + (listed(known) or 'none')))
    return text


def load_urdf(path: str | PathLike[str] | parser.URDF, *, floating_base: bool = False,
              gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
              max_joints: int | None = None, xacro_arguments: Iterable[str] = ()) -> Model:
    """
    Read a robot from a URDF or xacro file, its joints in document order, depth-first.

    Suspicious values with which the dynamics can be computed cause a ModelWarning. Elements
    <constraint> close loops; there, joints with an effort limit
    of 0 have no motor. Elsewhere limits of 0 of efforts and velocities are not stated: infinite.

    Parameters
    ----------
    path : str, path-like or urdf_parser_py.urdf.URDF
        The file, on which xacro is run if its name ends in .xacro; or the robot as an object.
    floating_base : bool
        Let the root link float in a world, as `with_floating_base` does, unless the robot already
        moves on a floating joint of its own.
    gravity : array_like, shape (3,)
        Acceleration of gravity in the root link's frame, or in the world's with a floating base,
        m/s^2.
    strict : bool
        Reject everything that otherwise causes warnings.
    max_joints, xacro_arguments : int, iterable of str, optional
        Reject robots with more joints, including fixed ones, before they are built; arguments of
        xacro, each ``name:=value``.

    Raises
    ------
    UrdfError
        If the file cannot be read, xacro is missing or fails, or the description is invalid; the
        message names the link or joint.

    """
    if isinstance(path, parser.URDF):
        return model_of_document(document_of(path), floating_base=floating_base, gravity=gravity,
                                 strict=strict, max_joints=max_joints)
    text = read_file(path, xacro_arguments)
    with named(path):
        return load_urdf_string(text, floating_base=floating_base, gravity=gravity, strict=strict,
                                max_joints=max_joints)


def read_file(path: str | PathLike[str], xacro_arguments: Iterable[str] = ()) -> str | bytes:
    """Return the text of a URDF or xacro file, as `load_urdf` reads it."""
    try:
        with Path(path).open('rb') as file:
            text = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise UrdfError(f'{printable(str(path), 300)} cannot be read: {error.strerror}') from None
    except (TypeError, ValueError) as error:
        raise UrdfError(f'{shown(path)} is not the path of a file: {error}') from None
    if Path(path).suffix == SUFFIX:
        with named(path):
            return expand_xacro(path, xacro_arguments)
    if xacro_arguments:
        raise UrdfError(f'{path}: its name does not end in {SUFFIX}, so it takes no arguments of '
                        f'xacro, got {listed(xacro_arguments)}')
    return text


def load_urdf_string(text: str | bytes, *, floating_base: bool = False,
                     gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
                     max_joints: int | None = None) -> Model:
    """
    Read a robot from the text of a URDF; errors and warnings are those of `load_urdf`.

    Parameters
    ----------
    text : str or bytes
        The document; bytes may have a byte-order mark or declare their encoding.
    floating_base, gravity, strict, max_joints
        As for `load_urdf`.

    """
    return model_of_document(parse(decode(text)), floating_base=floating_base, gravity=gravity,
                             strict=strict, max_joints=max_joints)


def model_of_document(root: etree._Element, *, floating_base: bool = False,
                      gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
                      max_joints: int | None = None) -> Model:
    """Return the robot that a parsed URDF describes; arguments as for `load_urdf`."""
    count = sum(1 for _ in root.iterchildren('joint'))
    if max_joints is not None and count > whole_number('max_joints', max_joints, least=0):
        raise UrdfError(f'the robot has {count} joints, max_joints is {max_joints}: simplify it, '
                        'or raise max_joints')
    notes: list[str] = []
    links, joints = describe(root, notes)
    rotors, unused = read_rotors(root)
    joints = [replace(joint, armature=rotors[joint.name]) if joint.name in rotors else joint
              for joint in joints]
    payloads = {joint.child for joint in joints
                if joint.kind == 'fixed' and joint.child == payload_name(joint.parent)}
    links = [replace(link, is_load=True) if link.name in payloads else link for link in links]
    if not any(link.name == 'world' for link in links):
        for joint in joints:
            if joint.parent == 'world':
                raise UrdfError(f"joint '{joint.name}' names link 'world', which is not there: "
                                'add <link name="world"/>')
    try:
        model = build_tree(root.get('name') or 'robot', links, joints, gravity,
                           [*ignored_contents(root), *unused, *notes])
        if floating_base and not _has_floating_base(model):
            model = with_floating_base(model)
        model = with_constraints(model, constraints_of(root))
        return warned(model, strict, [*point_masses(model.links, model.joints),
                                      *nothing_to_compute(model.links, model.joints)])
    except ModelError as error:
        raise UrdfError(str(error)) from None


def _has_floating_base(model: Model) -> bool:
    """Return whether the whole robot moves on one floating joint."""
    bodies = model.tree.robot[1:]
    return bodies[bodies[:, PARENT] == 0, KIND].tolist() == [FREE]
