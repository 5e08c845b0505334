# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A package with the functions of one robot in C: sources, a test, a build file, a README."""

from collections.abc import Mapping, Sequence
from importlib.resources import files
import math
import re
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

import numpy as np
import rbd_ros
from rbd_ros._internal.text import printable
from rbd_ros.codegen.c import prototype, Style, wrapped, Writer
from rbd_ros.codegen.functions import CLOSING, FUNCTIONS, INPUTS
from rbd_ros.codegen.graph import Array, Graph
from rbd_ros.codegen.tracing import trace
from rbd_ros.errors import ModelError
from rbd_ros.kernels.lanes.sines import C, MAX_ANGLE, QUARTER, ROUND, S
from rbd_ros.kernels.loops.arrays import ACCEPTED, ACCURACY, ITERATIONS, STALLED
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import normalize, random_configuration
from rbd_ros.model.positions.steps import quaternion_joints
from rbd_ros.workspace.workspace import workspace_of

STATES, SEED = 3, 1     # of the test program
# Digits of its answers relative to the largest, and allowed errors, by whether floats are single.
DIGITS, TOLERANCES = 13, {False: 1e-12, True: 1e-4}
GUESS_DIGITS = 3    # of configurations whose loops are to be closed
# Of closed loops in float, instead of those of the library: its rounding.
SINGLE_ACCURACY, SINGLE_ACCEPTED = 1e-6, 1e-5
LOOPS_NOTE = """
The robot has closed loops. `q` has the positions of all joints and must close the loops, which
`{prefix}_close_loops` does; velocities, accelerations and efforts are those of the joints below.
"""


class Package(NamedTuple):
    """What a package is made of."""

    model: Model
    style: Style
    graphs: Sequence[Graph]
    options: Mapping[str, Any]      # of the functions that take them
    sources: Mapping[str, str]      # digests of files, by name

    @property
    def name(self) -> str:
        return f'{self.style.prefix}_dynamics'

    @property
    def has_loops(self) -> bool:
        return any(graph.name in CLOSING for graph in self.graphs)


def identifier(name: str) -> str:
    """Return a name as part of C identifiers."""
    text = re.sub('[^a-z0-9]+', '_', name.lower()).strip('_') or 'robot'
    return f'robot_{text}' if text[0].isdigit() else text


def package_files(model: Model, functions: Sequence[str], *, prefix: str | None = None,
                  single: bool = False, sources: Mapping[str, str] | None = None,
                  **options: Any) -> dict[str, str]:
    """
    Return the files of a package with functions of a robot in C, by name.

    Parameters
    ----------
    model : Model
        The robot.
    functions : sequence of str
        Some of `FUNCTIONS`.
    prefix : str, optional
        Beginning of all names; default: the name of the robot.
    single : bool
        Whether numbers are ``float`` instead of ``double``.
    sources : mapping of str to str, optional
        Digests of the files that the robot comes from, by name, for the README.
    options
        As for `trace`.

    Raises
    ------
    ModelError
        As `trace`; or if the robot has no joint that moves.

    """
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves: nothing to generate")
    style = Style(identifier(model.name if prefix is None else prefix), single)
    graphs = [trace(model, name, **own_options(name, options))
              for name in FUNCTIONS if name in functions]
    if model.loops is not None:
        graphs += [trace(model, name) for name in CLOSING]
    package = Package(model, style, graphs, options, sources or {})
    return {f'{package.name}.h': header(package), f'{package.name}.c': source(package),
            f'test_{package.name}.c': test_program(package),
            'CMakeLists.txt': filled('CMakeLists.txt', package=package.name),
            'package.xml': filled('package.xml', package=package.name, robot=escaped(model.name)),
            'README.md': readme(package)}


def filled(template: str, **words: object) -> str:
    """Return a template with words in the places of their names, ``@name@``."""
    text = (files('rbd_ros.codegen') / 'templates' / f'{template}.in').read_text('utf-8')
    return re.sub(r'@(\w+)@', lambda place: str(words[place[1]]), text)


def escaped(text: str) -> str:
    """Return a text for XML."""
    return escape(printable(text))


def in_comment(text: str) -> str:
    """Return a text for a comment in C."""
    return printable(text).replace('*/', '* /').replace('/*', '/ *').encode(
        'ascii', 'replace').decode()


def quoted(text: str) -> str:
    """Return a string literal of C."""
    # Other characters as UTF-8 in octal; ?? could begin a trigraph.
    escapes = ''.join(c if 32 <= ord(c) < 127 and c not in '"\\?' else
                      ''.join(f'\\{byte:03o}' for byte in c.encode()) for c in text)
    return f'"{escapes}"'


def own_options(function: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a function."""
    missing = [name for name in FUNCTIONS[function].options if options.get(name) is None]
    if missing:
        raise ModelError(f'{function} needs the option {missing[0]}')
    return {name: options[name] for name in FUNCTIONS[function].options}


def describe(array: Array) -> str:
    """Return name, shape and meaning of an array."""
    return f'{array.name}[{" * ".join(map(str, array.shape))}]: {array.meaning}'


def closing_words(package: Package) -> dict[str, Any]:
    """Return the words of the function that closes loops."""
    style, single = package.style, package.style.single
    return {'prefix': style.prefix, 'real': style.real, 'nq': package.model.nq,
            'iterations': ITERATIONS, 'stalled': style.number(STALLED),
            'accuracy': style.number(SINGLE_ACCURACY if single else ACCURACY),
            'accepted': style.number(SINGLE_ACCEPTED if single else ACCEPTED)}


def header(package: Package) -> str:
    """Return the header."""
    upper, model, style = package.style.prefix.upper(), package.model, package.style
    functions = []
    for graph in package.graphs:
        lines = [f'in:  {describe(array)}' for array in graph.inputs]
        lines += [f'out: {describe(array)}' for array in graph.outputs]
        note = '\n'.join(wrapped(line, ' * ').replace('\n ', '\n *') for line in lines)
        functions.append(f'/*\n{note}\n */\n{prototype(style, graph)};\n')
    if package.has_loops:
        functions.append(filled('close_loops.h', **closing_words(package)))
    return filled(
        'header.h', robot=in_comment(model.name), package=package.name, upper=upper,
        guard=f'{package.name.upper()}_H', nq=model.nq, nv=model.nv, prefix=style.prefix,
        restrict=style.restrict, functions='\n'.join(functions))


def source(package: Package) -> str:
    """Return the definitions of the functions."""
    style, model = package.style, package.model
    functions = [Writer(style, graph).function() for graph in package.graphs]
    if package.has_loops:
        functions.append(filled('close_loops.c', **closing_words(package)))
    names = '\n'.join(
        f'const char *const {style.prefix}_{kind}_names[{style.prefix.upper()}_{size}] = {{\n'
        + ',\n'.join(f'    {quoted(name)}' for name in all_names) + '};'
        for kind, size, all_names in (('position', 'NQ', model.position_names),
                                      ('velocity', 'NV', model.velocity_names)))
    sines = ''
    if any('_cosines_and_sines(' in text for text in functions):
        first, second, third = QUARTER
        sines = '\n' + filled(
            'sines_float.c' if style.single else 'sines.c', prefix=style.prefix,
            RESTRICT=style.restrict, limit=MAX_ANGLE, per_quarter=2.0 / math.pi, ROUND=ROUND,
            first=first, second=second, third=third, S=polynomial(S), C=polynomial(C))
    return filled('source.c', package=package.name, names=names, sines=sines,
                  PART=f'{style.prefix.upper()}_PART', robot=in_comment(model.name),
                  functions='\n'.join(functions).rstrip('\n'))


def polynomial(coefficients: Sequence[float]) -> str:
    """Return a polynomial in z."""
    text = repr(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        text = f'{c!r}\n            + z * ({text})'
    return text


# -- The test program. --------------------------------------------------------------------------
def states_and_answers(package: Package, graph: Graph) -> list[tuple[list[np.ndarray],
                                                                     list[np.ndarray]]]:
    """Return inputs, and the outputs that the library computes for them."""
    model, rng, found = package.model, np.random.default_rng(SEED), []
    workspace, declared = workspace_of(model), FUNCTIONS[graph.name]
    for _ in range(STATES):
        given = {'q': random_configuration(model, rng)}
        given |= {name: rng.normal(size=model.nv) for name in INPUTS if name != 'q'}
        # Closed loops remain closed.
        inputs = {array.name: given[array.name].round(
            DIGITS if array.name == 'q' and package.has_loops else 3) for array in graph.inputs}
        answers = declared.call(workspace, **inputs, **own_options(graph.name, package.options))
        found.append(([*inputs.values()], [rounded(x) for x in answers[:len(graph.outputs)]]))
    return found


def rounded(x: np.ndarray) -> np.ndarray:
    """Return an array to DIGITS digits of its largest entry: the same on every machine."""
    largest = np.max(np.abs(x), initial=1e-3)
    # + 0.0: no negative zeros.
    return x.round(DIGITS - math.ceil(math.log10(largest))) + 0.0


def test_program(package: Package) -> str:
    """Return a program that compares the functions with the library at stored states."""
    style, blocks = package.style, []
    if package.has_loops:
        blocks += closing_blocks(package)
    for graph in package.graphs:
        if graph.name in CLOSING:
            continue
        for inputs, answers in states_and_answers(package, graph):
            lines = [stored(style, array.name, x) for array, x in zip(graph.inputs, inputs)]
            for array, x in zip(graph.outputs, answers):
                lines.append(stored(style, f'{array.name}_expected', x))
                lines.append(f'{style.real} {array.name}[{x.size}];')
            arguments = ', '.join(array.name for array in (*graph.inputs, *graph.outputs))
            lines.append(f'{style.prefix}_{graph.name}({arguments});')
            lines += [f'failures += differs("{graph.name}: {array.name}", {array.name}, '
                      f'{array.name}_expected, {x.size});'
                      for array, x in zip(graph.outputs, answers)]
            blocks.append(in_braces(lines))
    return filled(
        'test.c', package=package.name, real=style.real,
        tolerance=style.number(TOLERANCES[style.single]), fabs=style.call('fabs'),
        zero=style.number(0.0), one=style.number(1.0), blocks='\n'.join(blocks))


def in_braces(lines: Sequence[str]) -> str:
    """Return statements as a block."""
    body = '\n'.join(wrapped(line, '        ') for line in lines)
    return f'    {{\n{body}\n    }}'


def closing_blocks(package: Package) -> list[str]:
    """Return blocks that close loops whose dependent joints are off by a little."""
    model, style, rng, blocks = package.model, package.style, np.random.default_rng(SEED), []
    for _ in range(STATES):
        guess = random_configuration(model, rng).round(GUESS_DIGITS)
        numbers = stored(style, 'q', guess).removeprefix('static const ')
        blocks.append(in_braces([
            stored(style, 'q_expected', normalize(model, guess).round(DIGITS)), numbers,
            f'if (!{style.prefix}_close_loops(q))',
            '    failures += printf("close_loops: the loops are open\\n");',
            f'failures += differs("close_loops: q", q, q_expected, {model.nq});']))
    return blocks


def stored(style: Style, name: str, x: np.ndarray) -> str:
    """Return the definition of an array of constants."""
    numbers = ', '.join(map(style.number, x.ravel().tolist()))
    return f'static const {style.real} {name}[{x.size}] = {{{numbers}}};'


# -- The README. --------------------------------------------------------------------------------
def readme(package: Package) -> str:
    """Return a description of the package."""
    model, style = package.model, package.style
    functions = '\n'.join(
        f'| `{style.prefix}_{graph.name}` | {"; ".join(map(describe, graph.inputs))} | '
        f'{"; ".join(map(describe, graph.outputs))} |' for graph in package.graphs)
    positions = '' if model.position_names == model.velocity_names else (
        '\nEntries of `q`: ' + ', '.join(f'`{name}`' for name in model.position_names)
        + '.' + ' Quaternions are (x, y, z, w), of any nonzero length.' * bool(
            quaternion_joints(model.unconstrained)) + '\n')
    options = ''.join(
        f'- {name}: ' + (value if isinstance(value, str) else ', '.join(
            joint for joint, given in zip(model.velocity_names, value) if given) or 'none') + '\n'
        for name, value in package.options.items() if value is not None)
    return filled(
        'README.md', robot=model.name, package=package.name, prefix=style.prefix,
        functions=functions, joints=joint_rows(model), positions=positions,
        closing=LOOPS_NOTE.format(prefix=style.prefix) if package.has_loops else '',
        sources=source_list(package),
        options=options and f'\n\nOptions:\n\n{options}'.rstrip('\n'), version=rbd_ros.__version__,
        gravity=', '.join(f'{x:g}' for x in model.gravity), real=style.real,
        tolerance=f'{TOLERANCES[style.single]:g}')


def joint_rows(model: Model) -> str:
    """Return the rows of a table of the entries of vectors, and of their units."""
    return '\n'.join(
        f'| {k} | `{name}` | {"rad, rad/s, rad/s^2, N m" if turns else "m, m/s, m/s^2, N"} |'
        for k, (name, turns) in enumerate(zip(model.velocity_names, model.angular)))


def source_list(package: Package) -> str:
    """Return a list of the files that the robot comes from."""
    return '\n'.join(f'- `{name}`: SHA-256 `{digest}`' for name, digest in
                     package.sources.items()) or '- a robot built in a program'
