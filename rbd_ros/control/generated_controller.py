# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A package with a ros2_control controller around the C of one robot."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
import json
import math
from typing import Any

import numpy as np
import rbd_ros
from rbd_ros._internal.setting import Setting, settings_of
from rbd_ros._internal.text import listed
from rbd_ros.codegen.c import Style, wrapped
from rbd_ros.codegen.functions import FUNCTIONS, INPUTS
from rbd_ros.codegen.graph import Array, Graph, Tape
from rbd_ros.codegen.package import (
    escaped, filled, header, identifier, in_comment, joint_rows, Package, quoted, rounded, SEED,
    source, source_list, STATES, TOLERANCES)
from rbd_ros.codegen.symbols.interpretation import interpreted
from rbd_ros.codegen.symbols.symbolic_workspaces import results_of, symbolic_workspace
from rbd_ros.control.controller import Circumstances, Controller
from rbd_ros.control.effort_convention import CONVENTIONS, EffortConvention
from rbd_ros.control.friction import DEAD_BAND
from rbd_ros.control.laws import control_laws
from rbd_ros.control.momentum_observer import GAIN
from rbd_ros.errors import ModelError
from rbd_ros.model.changes.friction import friction
from rbd_ros.model.changes.modifications import with_payload
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import random_configuration
from rbd_ros.model.positions.steps import turning
from rbd_ros.motions.references import JointReference
from rbd_ros.workspace.memory.results import COM, COM_JACOBIAN, TORQUES
import yaml

# Modes of the controller, and the laws of the library.
MODES = {'gravity': 'gravity', 'pd_gravity': 'pd_gravity', 'computed_torque': 'computed_torque',
         'impedance': 'joint_impedance'}
JOINTS = 'the joints above'
# The parameters; those of `ITEMIZED` are declared in the template.
SETTINGS = {
    'mode': Setting('computed_torque', 'Control law.', choices=tuple(MODES)),
    'without_reference': Setting('hold', 'Hold the robot, or let it float: mode gravity.',
                                 choices=('hold', 'float')),
    **{f'{mode}.{name}': replace(gain, per=gain.per and JOINTS)
       for mode, law in MODES.items() for name, gain in control_laws()[law].gains.items()},
    'friction': Setting(False, 'Compensate the friction of the model.'),
    'friction_dead_band': Setting(DEAD_BAND, 'Largest error of measured velocities, for friction '
                                  'in the mode gravity.', 'rad/s or m/s', high=10.0),
    'springs': Setting(False, 'Add the torques that hold the springs of the model.'),
    'payload.mass': Setting(0.0, 'Mass of the payload.', 'kg', high=1e6),
    'payload.center': Setting((0.0, 0.0, 0.0), 'Its centre in the frame of the link that carries '
                              'it.', 'm', entries='x, y and z'),
    'state_interfaces': Setting(
        ('position', 'velocity'), 'States of the hardware: without velocity it is estimated; with '
        'effort, commands begin at measured efforts, from which external torques are computed.',
        entry=str),
    'velocity_cutoff': Setting(50.0, 'Of estimated velocities.', 'Hz', high=1e4),
    'blend_time': Setting(0.5, 'Duration of blends; after the start, at least 0.25 s.', 's',
                          high=60.0),
    'compensation_limits': Setting(
        (0.0,), 'Largest torques by which the mode computed_torque compensates external torques, '
        'such as those of an undeclared payload. In a contact it pushes with so much more.',
        'N m or N', high=1e9, per=JOINTS),
    'effort_limits': Setting((), 'Limits of commands; empty: those of the description.',
                             'N m or N', high=1e9, per=JOINTS),
    'effort_rate_limit': Setting(0.0, 'Largest rate of commands; 0: no limit.', 'N m/s or N/s',
                                 high=1e9),
    'soft_stop_zone': Setting(0.1, 'Width of the zones before position limits that push back, at '
                              'most a tenth of the range; 0: none.', 'rad or m', high=10.0),
    'velocity_guard': Setting(1.0, 'Multiple of the velocity limits beyond which joints are '
                              'braked; 0: never.', high=1e3),
    'delay': Setting(0.0, 'Delay of states and commands in the hardware, which limits how hard '
                     'joints are stopped and braked.', 's', high=1.0),
    'observer_gain': Setting(GAIN, 'Gain of the observer of external torques.', '1/s', high=1e4),
    **{f'effort_convention.{name}': settings_of([EffortConvention])[name]
       for name in ('commands', 'states', 'states_have_friction')}}
ITEMIZED = 'payload.center', 'state_interfaces'
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
        The link that carries the payload; default: the last one that moves.
    prefix, sources
        As for `rbd_ros.codegen.package_files`.

    Raises
    ------
    ModelError
        If the robot has closed loops, no joint that moves, or one with several coordinates; or if
        the tool is no link, or part of the root.

    """
    check(model)
    if tool is None:
        tool = [name for name, body in zip(model.link_names, model.tree.link_body) if body][-1]
    style = Style(identifier(model.name if prefix is None else prefix), False)
    package = Package(model, style, [terms(model, tool), joint_friction(model)], {}, sources or {})
    words = {**tables(package, tool), 'cases': cases(model, tool),
             'payload': vector((PAYLOAD[0], *PAYLOAD[1]))}
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
    robot, values, outputs = symbolic_workspace(model, {}), [], []
    robot.carry(tool, payload)
    for function, arguments in ((FUNCTIONS['all_terms'], {'q': q, 'v': v}),
                                (FUNCTIONS['spring_torques'], {'q': q})):
        for (name, meaning), x in zip(function.results.items(),
                                      results_of(function, robot, **arguments)):
            if name not in COM | COM_JACOBIAN:
                values.append(x)
                outputs.append(Array(name, np.shape(x), meaning))
    return tape.graph('controller_terms', model.name, inputs, tuple(outputs), values)


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
    name = f'{prefix}_controller'
    names = list(model.velocity_names)
    return {
        'package': name, 'dynamics': package.name, 'prefix': prefix, 'UPPER': prefix.upper(),
        'robot': in_comment(escaped(model.name)), 'tool': quoted(tool),
        **{name: wrapped(vector(limits), '    ') for name, limits in (
            ('lower', model.lower), ('upper', model.upper),
            ('fastest', model.velocity_limit),
            ('strongest', np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)))},
        'turns': wrapped(', '.join('true' if one else 'false' for one in turning(model)), '    '),
        'modes': ', '.join(map(str.upper, MODES)), 'conventions': ', '.join(
            map(str.upper, CONVENTIONS)), **parameters(),
        'joints': items(names), 'references': items([f'{name}/{one}' for one in names]),
        'joint_rows': joint_rows(model), 'sources': source_list(package),
        'gravity': ', '.join(f'{x:g}' for x in model.gravity), 'version': rbd_ros.__version__,
        'tolerance': TOLERANCES[False]}


def parameters() -> dict[str, str]:
    """Return the words of the templates for the parameters."""
    kinds: dict[str, dict[str, str]] = {'choice': {}, 'switch': {}, 'number': {}, 'vector': {}}
    for name, one in SETTINGS.items():
        if name in ITEMIZED:
            continue
        default, high, words = one.default, math.inf if one.high is None else one.high, ''
        if isinstance(default, bool):
            kind = 'switch'
        elif one.choices:
            kind, default, words = 'choice', one.choices.index(default), ', '.join(
                map(quoted, one.choices))
        else:
            kind, default = ('vector', next(iter(default), None)) if one.per else (
                'number', default)
        kinds[kind][name] = f'{value(default)}, {value(high)}, {{{words}}}'
    rows = [f'| `{name}` | {shown(one.default)} | {one.description}' + (
        f' One of {", ".join(f"`{word}`" for word in one.choices)}.' * bool(one.choices)) + ' |'
            for name, one in SETTINGS.items()]
    indices = {f'{kind}_indices': wrapped(', '.join(
        name.removeprefix('effort_convention.').replace('.', '_').upper() for name in entries),
        '    ') for kind, entries in kinds.items()}
    return {**indices, 'setting_rows': '\n'.join(rows), 'parameter_table': ',\n'.join(
        f'    {{{quoted(name)}, {text}}}' for entries in kinds.values()
        for name, text in entries.items())}


def value(x: float | None) -> str:
    """Return a number in C++."""
    if x is None:
        return 'NOT_GIVEN'
    return repr(float(x)) if math.isfinite(x) else '-INF' if x < 0.0 else 'INF'


def shown(default: Any) -> str:
    """Return the default of a parameter in YAML."""
    plain = list(default) if isinstance(default, tuple) else default
    return str(yaml.safe_dump(plain, default_flow_style=True)).split('\n')[0]


def items(names: Iterable[str]) -> str:
    """Return the items of a list in YAML."""
    return '\n'.join(f'      - {json.dumps(name, ensure_ascii=False)}' for name in names)


def vector(x: Iterable[float]) -> str:
    """Return the entries of a vector in C++."""
    return ', '.join(map(value, x))


# -- The test. ----------------------------------------------------------------------------------
def cases(model: Model, tool: str) -> str:
    """Return states, references and torques of each law of the library."""
    rng, found = np.random.default_rng(SEED), []
    loaded = with_payload(model, tool, *PAYLOAD)
    for mode in MODES:
        law = default_law(loaded, mode)
        for _ in range(STATES):
            q, q_r = (random_configuration(model, rng).round(3) for _ in range(2))
            v, v_r, a_r, tau_r = rng.normal(size=(4, model.nv)).round(3)
            reference = None if mode == 'gravity' else JointReference(model, q_r, v_r, a_r)
            # A step of less than half a turn: rounding does not choose its direction.
            expected = rounded(law.update(0.0, q, v, reference) + tau_r)
            x, r = (f'{{{", ".join(f"{{{vector(one)}}}" for one in group)}}}'
                    for group in ((q, v, ()), (q_r, v_r, a_r, tau_r)))
            found.append(wrapped(f'    {{{mode.upper()}, {x}, {r}, {{{vector(expected)}}}}}',
                                 '        '))
    return ',\n'.join(found)


def default_law(model: Model, mode: str) -> Controller:
    """Return the law of a mode with its default gains, and with friction and springs."""
    law = control_laws()[MODES[mode]]
    gains = {name: next(iter(one.default), None) if one.per else one.default
             for name, one in law.gains.items()}
    found = law.from_gains(Circumstances(model, '', np.zeros(model.nq), True, DEAD_BAND), **gains)
    found.compensates_springs = True
    return found
