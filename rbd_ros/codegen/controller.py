# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A package with a ros2_control controller around the C of one robot."""

from collections.abc import Iterable, Mapping
import math
from typing import Any

import numpy as np
import rbd_ros
from rbd_ros._internal.text import listed
from rbd_ros.codegen import package_texts as texts
from rbd_ros.codegen.c import Style, wrapped
from rbd_ros.codegen.functions import COM, COM_JACOBIAN, FUNCTIONS, INPUTS, TORQUES
from rbd_ros.codegen.graph import Array, Graph, Tape
from rbd_ros.codegen.interpretation import interpreted, SymbolicRobot
from rbd_ros.codegen.package import (header, identifier, joint_rows, Package, rounded, source,
                                     SEED, source_list, STATES, TOLERANCES)
from rbd_ros.codegen.package_texts import filled
from rbd_ros.control.controller import Circumstances, Controller
from rbd_ros.control.laws import control_laws
from rbd_ros.control.motion_guard import stated_speeds
from rbd_ros.control.references import JointReference
from rbd_ros.errors import ModelError
from rbd_ros.model.configurations import random_configuration
from rbd_ros.model.friction import friction
from rbd_ros.model.model import Model
from rbd_ros.model.modifications import with_payload
from rbd_ros.model.steps import turning

# Modes of the controller, and the laws of the library.
MODES = {'gravity': 'gravity', 'pd_gravity': 'pd_gravity', 'computed_torque': 'computed_torque',
         'impedance': 'joint_impedance'}
FILES = {'robot.hpp': 'controller_robot.hpp', 'law.hpp': 'controller_law.hpp',
         'controller.cpp': 'controller.cpp', 'test_law.cpp': 'controller_test.cpp',
         'controller.xml': 'controller_plugin.xml', 'controllers.yaml': 'controller_bringup.yaml',
         'CMakeLists.txt': 'controller_CMakeLists.txt', 'package.xml': 'controller_package.xml',
         'README.md': 'controller_README.md'}
PAYLOAD = 1.5, (0.02, -0.03, 0.1)    # kg and m, of the test


def controller_files(model: Model, *, tool: str | None = None, prefix: str | None = None,
                     sources: Mapping[str, str] | None = None) -> dict[str, str]:
    """
    Return the files of a package with a ros2_control controller of a robot, by name.

    Parameters
    ----------
    model : Model
        The robot.
    tool : str, optional
        The link that carries the payload; default: the last one.
    prefix, sources
        As for `rbd_ros.codegen.package_files`.

    Returns
    -------
    dict of str to str

    Raises
    ------
    ModelError
        If the robot has closed loops, no joint that moves, or one with several coordinates; or if
        the tool is no link, or part of the root.

    """
    check(model)
    tool = model.link_names[-1] if tool is None else tool
    style = Style(identifier(model.name if prefix is None else prefix), False)
    package = Package(model, style, [terms(model, tool), joint_friction(model)], {}, sources or {})
    words = {**tables(package, tool), 'blocks': '\n'.join(blocks(model, tool))}
    return {f'{package.name}.h': header(package), f'{package.name}.c': source(package),
            **{name: filled(template, **words) for name, template in FILES.items()}}


def check(model: Model) -> None:
    """Raise ModelError if there is no controller for a robot."""
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves: nothing to control")
    if model.loops is not None:
        names = listed([one.name for one in model.constraints])
        raise ModelError(f"robot '{model.name}' has closed loops ({names}), for which no "
                         'controller is generated; rbd_ros generate without --controller writes '
                         'its functions')
    for joint, _, _ in model.moving_joints:
        if joint.nv > 1:
            raise ModelError(f"joint '{joint.name}' is {joint.kind}, but ros2_control drives "
                             'joints with one coordinate: lock it, or fix the base')


# -- The functions. -----------------------------------------------------------------------------
def terms(model: Model, tool: str) -> Graph:
    """Return the graph of all terms of a robot with a payload."""
    tape = Tape()
    inputs = (Array('q', (model.nq,), INPUTS['q']), Array('v', (model.nv,), INPUTS['v']),
              Array('payload', (4,), f"mass, kg, and centre in the frame of '{tool}', m"))
    q, v, payload = (tape.inputs(k, array.shape) for k, array in enumerate(inputs))
    robot = SymbolicRobot(model, {})
    robot.carry(tool, payload)
    outputs = [one for one in FUNCTIONS['all_terms'].outputs if one not in (COM_JACOBIAN, COM)]
    values = [*FUNCTIONS['all_terms'].run(robot, q, v)[:len(outputs)],
              *FUNCTIONS['spring_torques'].run(robot, q)]
    outputs += FUNCTIONS['spring_torques'].outputs
    return tape.graph('controller_terms', model.name, inputs, tuple(
        Array(name, np.shape(x), meaning) for (name, meaning), x in zip(outputs, values)), values)


def joint_friction(model: Model) -> Graph:
    """Return the graph of the friction of the joints."""
    tape, shape = Tape(), (model.nv,)
    inputs = (Array('v', shape, INPUTS['v']),
              Array('direction', shape, 'of Coulomb friction, from -1 to 1'),
              Array('speed', shape, 'of the Stribeck term, rad/s or m/s'))
    values = interpreted(friction)(model, *(tape.inputs(k, shape) for k in range(3)))
    return tape.graph('joint_friction', model.name, inputs, (Array('friction', shape, TORQUES),),
                      [values])


# -- The texts. ---------------------------------------------------------------------------------
def tables(package: Package, tool: str) -> dict[str, Any]:
    """Return the words of the templates, apart from the blocks of the test."""
    model, prefix = package.model, package.style.prefix
    laws, name = control_laws(), f'{package.style.prefix}_controller'
    gains = {(mode, gain): one for mode, law in MODES.items()
             for gain, one in laws[law].gains.items()}
    defaults = {key: one.default[0] if isinstance(one.default, tuple) and one.default
                else one.default or None for key, one in gains.items()}
    joints = [texts.quoted(one) for one in model.velocity_names]
    return {
        'package': name, 'dynamics': package.name, 'prefix': prefix, 'UPPER': prefix.upper(),
        'robot': texts.in_comment(texts.escaped(model.name)), 'tool': texts.quoted(tool),
        'lower': vector(model.lower), 'upper': vector(model.upper),
        'fastest': vector(stated_speeds(model.velocity_limit)),
        'strongest': vector(stated_speeds(model.effort_limit)),
        'turns': ', '.join('true' if one else 'false' for one in turning(model)),
        'modes': ', '.join(map(str.upper, MODES)),
        'mode_names': ', '.join(f'"{mode}"' for mode in MODES),
        'gains': ', '.join(constant(*key) for key in gains),
        'gain_table': ',\n'.join(
            f'    {{"{mode}.{gain}", {value(defaults[mode, gain])}, {one.high!r}}}'
            for (mode, gain), one in gains.items()),
        'gain_rows': '\n'.join(
            f'| `{mode}.{gain}` | {shown(defaults[mode, gain])} | {one.meaning}'
            f'{one.unit and f" In {one.unit}."} |'
            for (mode, gain), one in gains.items()),
        'joints': '\n'.join(f'      - {one}' for one in joints),
        'references': '\n'.join(f'      - {texts.quoted(f"{name}/{one}")}'
                                for one in model.velocity_names),
        'joint_rows': joint_rows(model), 'sources': source_list(package),
        'gravity': ', '.join(f'{x:g}' for x in model.gravity), 'version': rbd_ros.__version__,
        'tolerance': TOLERANCES[False]}


def constant(mode: str, gain: str) -> str:
    """Return the name of the index of a gain."""
    return f'{mode}_{gain}'.upper()


def value(x: float | None) -> str:
    """Return a number in C++."""
    if x is None:
        return 'NOT_GIVEN'
    return repr(float(x)) if math.isfinite(x) else '-INF' if x < 0.0 else 'INF'


def shown(x: float | None) -> str:
    """Return a default for a table."""
    return '[]' if x is None else f'{x:g}'


def vector(x: Iterable[float]) -> str:
    """Return the entries of a vector in C++."""
    return ', '.join(map(value, x))


# -- The test. ----------------------------------------------------------------------------------
def blocks(model: Model, tool: str) -> list[str]:
    """Return the statements that compare each law with the library at some states."""
    rng, found = np.random.default_rng(SEED), []
    loaded = with_payload(model, tool, *PAYLOAD)
    payload = vector((PAYLOAD[0], *PAYLOAD[1]))
    for mode in MODES:
        law = default_law(loaded, mode)
        for _ in range(STATES):
            q, q_r = (random_configuration(model, rng).round(3) for _ in range(2))
            v, v_r, a_r, tau_r = rng.normal(size=(4, model.nv)).round(3)
            reference = None if mode == 'gravity' else JointReference(model, q_r, v_r, a_r)
            # A step of less than half a turn: rounding does not choose its direction.
            expected = rounded(law.update(0.0, q, v, reference) + tau_r)
            lines = [f'const Sample x{{{{{vector(q)}}}, {{{vector(v)}}}, {{}}}};',
                     f'const Motion r{{{{{vector(q_r)}}}, {{{vector(v_r)}}}, {{{vector(a_r)}}}, '
                     f'{{{vector(tau_r)}}}}};', f'const Vector expected = {{{vector(expected)}}};',
                     f'failures += differs("{mode}", torques(s, {mode.upper()}, terms(x.q, x.v, '
                     f'{{{payload}}}), x, r), expected);']
            body = '\n'.join(wrapped(line, '        ') for line in lines)
            found.append(f'    {{\n{body}\n    }}')
    return found


def default_law(model: Model, mode: str) -> Controller:
    """Return the law of a mode with its default gains, and with friction and springs."""
    law = control_laws()[MODES[mode]]
    gains = {name: one.default or None for name, one in law.gains.items()}
    gains = {name: x[0] if isinstance(x, tuple) and len(x) == 1 else x
             for name, x in gains.items()}
    found = law.from_gains(Circumstances(model, '', np.zeros(model.nq), True, 0.02), **gains)
    found.compensates_springs = True
    return found
