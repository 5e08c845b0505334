# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of links, read from URDF or MJCF: meshes, primitives, or boxes of inertia."""

from collections.abc import Mapping, Sequence
import os
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import numpy as np
from rbd_ros._internal.text import listed, printable
from rbd_ros.errors import RbdError, UrdfError
from rbd_ros.model.files.mjcf import compile_mjcf, is_mjcf
from rbd_ros.model.files.urdf_document import placement
from rbd_ros.model.files.xml_elements import decode, Element, parse
from rbd_ros.model.joints import quaternion_matrix
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import pose
from rbd_ros.view.shapes import BOX, inertia_solid

SUFFIXES = ('.dae', '.stl', '.obj', '.ply', '.glb', '.gltf')    # of meshes; others are not opened


def _mesh_file(name: str, folder: Path | None, package_path: Sequence[str | os.PathLike[str]]
               ) -> Path:
    """
    Return the path of a mesh given as package://, file:// or a path, or raise UrdfError.

    Packages are searched in the given folders, in AMENT_PREFIX_PATH and ROS_PACKAGE_PATH, then in
    the folders above the URDF; paths are relative to `folder`, that of the URDF.

    """
    url = urlsplit(name)
    path = unquote(url.path)
    if Path(path).suffix.lower() not in SUFFIXES:
        raise UrdfError(f'only {", ".join(SUFFIXES)} are read as meshes')
    if url.scheme == 'package':
        above = () if folder is None else (folder.resolve(), *folder.resolve().parents)
        search = [*map(Path, package_path),
                  *(Path(prefix) / 'share' for prefix in _folders('AMENT_PREFIX_PATH')),
                  *map(Path, _folders('ROS_PACKAGE_PATH')), *above]
        # A folder on the search path contains the package, or is the package itself.
        places = [package / path.lstrip('/') for place in search
                  for package in (place / url.netloc, place) if package.name == url.netloc]
        reason = (f"there is no package '{url.netloc}' that contains it; give the folder of the "
                  'package by --package-path or the parameter package_path')
    elif url.scheme == 'file' or (not url.scheme and Path(path).is_absolute()):
        places, reason = [Path(path)], 'there is no such file'
    elif url.scheme or folder is None:
        raise UrdfError('only package:// and file:// are read'
                        + ('' if url.scheme else ': the URDF was not read from a file'))
    else:
        places, reason = [folder / path], f'there is no such file in {folder}'
    for place in places:
        if place.is_file():
            return place
    raise UrdfError(reason)


def _folders(variable: str) -> list[str]:
    return [folder for folder in os.environ.get(variable, '').split(os.pathsep) if folder]


Color = tuple[float, ...]
GREY: Color = (0.72, 0.72, 0.75, 1.0)
BLUE: Color = (0.35, 0.5, 0.75, 1.0)    # boxes of inertia, to tell them from shapes of the URDF


class Geometry(NamedTuple):
    """The shapes of a robot."""

    shapes: dict[int, bytes]    # Binary glTF by link index, in the link's frame
    notes: tuple[str, ...]  # meshes that could not be read, with the reasons


def load_geometry(model: Model, text: str | bytes, folder: Path | None = None,
                  package_path: Sequence[str | os.PathLike[str]] = ()) -> Geometry:
    """
    Return the shapes of all links of a robot; ``text`` is its URDF or MJCF.

    A link is drawn by its <visual> elements; if one of their meshes cannot be read, also by the
    primitives of its <collision> elements; without any shape, by the box of uniform density with
    its mass and inertia. Meshes are found in the ``folder`` of the URDF and in ``package_path``,
    folders that contain packages. RbdError: trimesh is missing; UrdfError: the text is invalid.

    """
    if is_mjcf(text):
        return mjcf_geometry(model, compile_mjcf(text))
    trimesh = _trimesh()
    root = parse(decode(text))
    elements = {element.get('name'): element for element in root.iterchildren('link')}
    reader = _Reader(root, folder, package_path)
    scenes = {name: trimesh.Scene() for name in model.link_names if name in elements}
    for name, scene in scenes.items():
        reader.add_link(scene, Element(elements[name], f"link '{name}'"))
    return Geometry(_shapes(model, scenes), reader.notes())


def _shapes(model: Model, scenes: Mapping[str, Any]) -> dict[int, bytes]:
    """Return the shapes of links, by inertia where a scene is missing or empty."""
    shapes: dict[int, bytes] = {}
    for k, link in enumerate(model.links):
        scene = scenes.get(link.name) or _trimesh().Scene()
        if not scene.geometry and link.mass > 0.0:
            axes, size = inertia_solid(link, BOX)
            _add(scene, _trimesh().creation.box(size), pose(axes, link.com), BLUE)
        if scene.geometry:
            shapes[k] = scene.export(file_type='glb')
    return shapes


def mjcf_geometry(model: Model, compiled: Any) -> Geometry:
    """Return the shapes of a robot read from MJCF."""
    # A link is drawn by its geoms of the groups 0 to 2, which MuJoCo's viewer shows, or by all if
    # it has none of these. Planes and height fields are left out.
    import mujoco
    m, scenes = compiled, {}
    for body in range(m.nbody):
        geoms = range(m.body_geomadr[body], m.body_geomadr[body] + m.body_geomnum[body])
        name = mujoco.mj_id2name(m, mujoco.mjtObj.mjOBJ_BODY, body) or f'body_{body}'
        scene = scenes[name] = _trimesh().Scene()
        for g in [g for g in geoms if m.geom_group[g] <= 2] or geoms:
            mesh = _mjcf_shape(m, g, mujoco.mjtGeom(m.geom_type[g]).name)
            color = m.mat_rgba[m.geom_matid[g]] if m.geom_matid[g] >= 0 else m.geom_rgba[g]
            if mesh is not None:
                _add(scene, mesh, pose(quaternion_matrix(np.roll(m.geom_quat[g], -1)),
                                       m.geom_pos[g]), tuple(map(float, color)))
    return Geometry(_shapes(model, scenes), ())


def _mjcf_shape(m: Any, g: int, kind: str) -> Any:
    """Return the mesh of geom g, or None for kinds that are not drawn."""
    trimesh, (x, y, z) = _trimesh(), m.geom_size[g]
    if kind == 'mjGEOM_MESH':
        k = m.geom_dataid[g]
        return trimesh.Trimesh(
            m.mesh_vert[m.mesh_vertadr[k]:m.mesh_vertadr[k] + m.mesh_vertnum[k]],
            m.mesh_face[m.mesh_faceadr[k]:m.mesh_faceadr[k] + m.mesh_facenum[k]])
    creation = trimesh.creation
    makers = {
        'mjGEOM_BOX': lambda: creation.box((2.0 * x, 2.0 * y, 2.0 * z)),
        'mjGEOM_SPHERE': lambda: creation.icosphere(radius=x),
        'mjGEOM_ELLIPSOID': lambda: creation.icosphere().apply_scale((x, y, z)),
        'mjGEOM_CYLINDER': lambda: creation.cylinder(x, 2.0 * y),
        'mjGEOM_CAPSULE': lambda: creation.capsule(2.0 * y, x)}
    return makers[kind]() if kind in makers else None


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError as error:
        raise RbdError('drawing robots needs trimesh: pip install "rbd_ros[view]"') from error
    return trimesh


class _Reader:
    """Reads the shapes of links and collects the reasons for unreadable ones."""

    def __init__(self, root: Any, folder: Path | None,
                 package_path: Sequence[str | os.PathLike[str]]) -> None:
        self._folder, self._package_path = folder, package_path
        self._materials = {element.get('name'): Element(element, 'a <material>')
                           for element in root.iterchildren('material')}
        self._unread: dict[str, list[str]] = {}     # names of unreadable meshes, by reason

    def notes(self) -> tuple[str, ...]:
        return tuple(printable(f'not drawn: {listed(list(dict.fromkeys(names)))}: {reason}')
                     for reason, names in self._unread.items())

    def add_link(self, scene: Any, link: Element) -> None:
        readable = [self._add_shape(scene, visual) for visual in link.children('visual')]
        if not all(readable):
            for collision in link.children('collision'):
                self._add_shape(scene, collision, meshes=False)

    def _add_shape(self, scene: Any, element: Element, meshes: bool = True) -> bool:
        """Add a <visual> or <collision>; return whether it could be read."""
        name = element.where
        try:
            shape = element.required_child('geometry')
            T, color = placement(element, []), self._color(element.child('material'))
            mesh = shape.child('mesh')
            if mesh is None:
                _add(scene, _primitive(shape), T, color or GREY)
            elif meshes:
                name = mesh.text('filename')
                scale = np.diag([*mesh.vector('scale', (1.0, 1.0, 1.0)), 1.0])
                for part in _load(_mesh_file(name, self._folder, self._package_path)):
                    _add(scene, part, T @ scale, color)
            return True
        except UrdfError as error:
            self._unread.setdefault(str(error), []).append(name)
            return False

    def _color(self, material: Element | None) -> Color | None:
        """Return red, green, blue and opacity of a material, or None."""
        if material is not None and material.child('color') is None:
            material = self._materials.get(material.text('name')) if material.has('name') else None
        color = None if material is None else material.child('color')
        if color is None:
            return None
        try:
            rgba = tuple(map(float, color.text('rgba').split()))
        except ValueError:
            return None
        return rgba if len(rgba) == 4 and all(0.0 <= x <= 1.0 for x in rgba) else None


def _primitive(shape: Element) -> Any:
    creation = _trimesh().creation
    makers = {'box': lambda box: creation.box(box.vector('size')),
              'cylinder': lambda c: creation.cylinder(c.number('radius'), c.number('length')),
              'sphere': lambda sphere: creation.icosphere(radius=sphere.number('radius')),
              'capsule': lambda c: creation.capsule(c.number('length'), c.number('radius'))}
    for tag, make in makers.items():
        found = shape.child(tag)
        if found is not None:
            return make(found)
    raise UrdfError(f'its <geometry> contains none of {", ".join(makers)}, mesh')


def _load(path: Path) -> list[Any]:
    try:
        scene = _trimesh().load_scene(path)
        # COLLADA files contain a unit and an upward axis; like RViz, ignore the axis.
        parts: list[Any] = (scene.convert_units('meters') if scene.units else scene).dump()
    except Exception as error:
        raise UrdfError(f'{path} is broken, or its format needs another package: {error}'
                        ) from error
    if not any(len(part.vertices) for part in parts):
        raise UrdfError(f'{path} is empty or broken')
    return parts


def _add(scene: Any, mesh: Any, T: np.ndarray, color: Color | None) -> None:
    """Add a mesh at a pose, in a colour or, for None, in its own."""
    if color is not None:
        material = _trimesh().visual.material.PBRMaterial(
            baseColorFactor=[round(255.0 * x) for x in color], metallicFactor=0.1,
            roughnessFactor=0.7, alphaMode='BLEND' if color[3] < 1.0 else None)
        mesh.visual = _trimesh().visual.TextureVisuals(material=material)
    scene.add_geometry(mesh, transform=T)
