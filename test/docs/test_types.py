# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Type checkers see the types of the library in programs of its users."""

import ast
from importlib import import_module
import inspect
import os
from pathlib import Path
import re
import subprocess
import sys

import pytest
import rbd_ros
from rbd_ros import Workspace
from rbd_ros.quantities import QUANTITIES
from stubs import PACKAGE, stubs

STUBS = stubs()
# Kept between runs, because NumPy's types alone take ten seconds.
CACHE = PACKAGE.parent / '.pytest_cache/mypy'
# The comment of a line is the expected output of the checker: the revealed type (NumPy's without
# its parameters) or the kind of error. Lines without a comment must have no output.
PROGRAM = """\
import numpy as np
import rbd_ros
from rbd_ros import ModelBuilder, Workspace
from rbd_ros.identification import read_recording
from rbd_ros.model import normalize
model = rbd_ros.load_urdf('arm.urdf')
reveal_type(model)  # rbd_ros.model.model.Model
reveal_type(model.velocity_names)  # tuple[str, ...]
reveal_type(model.moving_joints[0][0].mimic)  # rbd_ros.model.joints.Mimic | None
reveal_type(ModelBuilder('arm').link('base').build())  # rbd_ros.model.model.Model
q, v = rbd_ros.neutral(model), [0.0] * model.nv
reveal_type(q)  # numpy.ndarray
reveal_type(rbd_ros.mass_matrix(model, q))  # numpy.ndarray
reveal_type(rbd_ros.all_terms(model, q, v, factorization='body').com)  # numpy.ndarray
reveal_type(rbd_ros.hybrid_dynamics(model, q, v, v, v, [True])[0])  # numpy.ndarray
reveal_type(rbd_ros.simulate(model, q, v, 0.0, [0.0, 0.1]).energy)  # numpy.ndarray
reveal_type(rbd_ros.batch.all_terms(model, [q], [v]).M)  # numpy.ndarray
reveal_type(rbd_ros.analysis.kinetic_energy(model, q, v))  # float
reveal_type(rbd_ros.textbook.christoffel_symbols(model, q))  # numpy.ndarray
reveal_type(normalize(model, q))  # numpy.ndarray
reveal_type(rbd_ros.__version__)  # str
workspace = Workspace(model)
reveal_type(workspace.all_terms(q, v).M)  # numpy.ndarray
reveal_type(workspace.inverse_dynamics(q, v, v))  # numpy.ndarray
reveal_type(workspace.task_space_dynamics(q, v, 'tip').damped)  # bool
rbd_ros.inverse_dynamics(model, q, v, v, external_wrenches={'tip': np.zeros(6)})
rbd_ros.inverse_dynamics(model, q, v, v, external_wrenches=[np.zeros(6)])  # arg-type
rbd_ros.mass_matrix(q, model)  # arg-type
rbd_ros.mass_matrix(model)  # call-arg
rbd_ros.mass_matrix(model, q, v)  # call-arg
rbd_ros.mass_matrix('arm.urdf', q)  # arg-type
rbd_ros.mass_matrices(model, q)  # attr-defined
rbd_ros.analysis.kinetic(model, q, v)  # attr-defined
rbd_ros.coriolis_matrix(model, q, v, factorization='Christoffel')  # arg-type
rbd_ros.load_urdf('arm.urdf', gravity_vector=(0.0, 0.0, -9.81))  # call-arg
model.mass = 1.0  # misc
workspace.all_terms(q, v).m  # attr-defined
reveal_type(workspace.world_jacobian(q, 'tip')[1])  # numpy.ndarray
reveal_type(rbd_ros.world_jacobian(model, q, 'tip'))  # numpy.ndarray
derivatives = rbd_ros.hybrid_dynamics_derivatives(model, q, v, v, v, [True])
reveal_type(derivatives.by_input)  # numpy.ndarray
reveal_type(rbd_ros.task_space_dynamics(model, q, v, 'tip').damped)  # bool
workspace.mass_matrix(q, v)  # call-arg
workspace.mass_matrices(q)  # attr-defined
workspace.inverse_dynamics(q, v, v, external_wrenches=[np.zeros(6)])  # arg-type
rbd_ros.batch.inverse_dynamics(model, [q], [v])  # call-arg
"""


def said(program, folder):
    """Return the output of mypy with default settings for each line of a program."""
    (folder / 'program.py').write_text(program, encoding='utf-8')
    (folder / 'mypy.ini').write_text('[mypy]\n')
    run = subprocess.run(
        [sys.executable, '-m', 'mypy', '--no-error-summary', '--show-error-codes',
         f'--cache-dir={CACHE}', 'program.py'],
        cwd=folder, env={**os.environ, 'PYTHONPATH': str(Path(rbd_ros.__file__).parents[1])},
        capture_output=True, text=True)
    lines = [[] for _ in program.splitlines()]
    for line in (run.stdout + run.stderr).splitlines():
        place = re.match(r'program\.py:(\d+): (.*)', line)
        assert place, line
        lines[int(place[1]) - 1].append(place[2])
    return lines


def test_users_see_types_and_wrong_use_is_refused(tmp_path):
    pytest.importorskip('mypy')
    lines = PROGRAM.splitlines()
    for line, found in zip(lines, said(PROGRAM, tmp_path)):
        _, mark, wanted = line.partition('  # ')
        if not mark:
            assert not found, line
        elif line.startswith('reveal_type'):
            assert len(found) == 1, line
            kind = re.fullmatch(r'note: Revealed type is "(.*)"', found[0])[1]
            assert kind == wanted or kind.startswith(f'{wanted}['), line
        else:
            assert found[0].startswith('error: '), line
            assert found[0].endswith(f'[{wanted}]'), line


@pytest.mark.parametrize('path', STUBS, ids=lambda path: '/'.join(path.parts[-2:]))
def test_stubs_are_up_to_date(path):
    assert path.read_text(encoding='utf-8') == STUBS[path], 'run make stubs'


@pytest.mark.parametrize('path', [path for path in STUBS if path.stem == '__init__'],
                         ids=lambda path: path.parent.name)
def test_stubs_have_the_names_of_the_package(path):
    package = import_module('.'.join(path.parent.relative_to(PACKAGE.parent).parts))
    held = [*re.findall(r' (\w+) as \1\b', STUBS[path].replace('(', ' ')),
            *re.findall(r'^def (\w+)', STUBS[path], re.MULTILINE)]
    assert sorted(held) == package.__all__


def test_types_and_templates_are_packaged():
    installed, templates = Path(rbd_ros.__file__).parent, [*PACKAGE.glob('*/templates/*.in')]
    assert len(templates) > 15
    for path in [PACKAGE / 'py.typed', *STUBS, *templates]:
        assert (installed / path.relative_to(PACKAGE)).is_file(), 'package_data of setup.py'


def test_no_more_is_generated_than_lazy_imports_need():
    assert {*PACKAGE.rglob('*.pyi')} == STUBS.keys()
    assert all(path.stem == '__init__' for path in STUBS)


def statements(module, name, of_class=None):
    """Return the statements that define a name in a module, or in one of its classes."""
    body = ast.parse(inspect.getsource(module)).body
    if of_class is not None:
        body, = (node.body for node in body
                 if isinstance(node, ast.ClassDef) and node.name == of_class)
    return [node for node in body if name == getattr(node, 'name', None) or name in (
        getattr(one, 'id', None) for one in getattr(node, 'targets', ()))]


@pytest.mark.parametrize('name', [name for name, one in QUANTITIES.items() if one.method])
def test_the_definition_of_a_method_and_of_its_plain_function_is_code(name):
    function, method = QUANTITIES[name].function, QUANTITIES[name].method
    owner, = (one for one in Workspace.__mro__ if name in vars(one))
    assert vars(owner)[name] is method and method.__module__ == owner.__module__
    module = import_module(owner.__module__)
    defined, = statements(module, name, owner.__name__)
    assert isinstance(defined, ast.FunctionDef) and ast.get_docstring(defined)
    # Editors follow the second name to the first.
    derived = [ast.unparse(one) for one in statements(module, name)]
    assert len(derived) == (function is not None) and getattr(module, name, None) is function
    assert all(one.startswith(f'{name} = plain({owner.__name__}.{name}') for one in derived)
