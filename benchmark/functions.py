# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time every public function outside the textbook, as a user calls it.

`library.py` compares the methods of a workspace with other libraries; this script times the plain
functions. The time is per sample or per state for functions that take hundreds of them, and per
robot for functions that create or analyse one. Few rounds suffice, since nothing is compared.

"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import mujoco
import numpy as np
import rbd_ros
from rbd_ros import analysis, batch, casadi, codegen, control, identification
from rbd_ros import model as models
from rbd_ros.quantities import QUANTITIES
from rbd_ros.simulation.mujoco_robot import mujoco_urdf
from rbd_ros.workspace.quantity import VECTORS

# Samples of a recording, and states of a batch
SAMPLES, STATES = 200, 1024
# s, between two samples and two steps
PERIOD, STEP = 0.01, 1e-3
STEPS = 20
# s, above which a call is timed once, its first
LONG = 1.0


class Call(NamedTuple):
    """A timed call: ``count`` samples, states or steps, or one robot or call."""

    per: str
    count: int
    run: Callable[[], object]


def of_quantities(model: Any, tip: str | None = None) -> dict[str, Call]:
    """Return the calls of all forms of declared quantities, by the name below rbd_ros."""
    rng = np.random.default_rng(2)
    many = {name: rng.normal(size=(STATES, model.nv)) for name in VECTORS}
    many['q'] = np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)])
    tip = model.link_names[-1] if tip is None else tip
    others = {'link': tip, 'prescribed': np.arange(model.nv) % 2 == 0,
              'variation': analysis.Variation(), 'contacts': [analysis.Contact(tip, 'surface')]}
    one_state, found = {name: x[0] for name, x in many.items()} | others, {}
    for name, one in QUANTITIES.items():
        if one.function is not None:
            place = name if name in rbd_ros.__all__ else f'analysis.{name}'
            found[place] = Call('call', 1, partial(
                one.function, model, *(one_state[x] for x in one.arguments)))
        if one.method is not None and hasattr(batch, name):
            found[f'batch.{name}'] = Call('state', STATES, partial(
                getattr(batch, name), model, *((many | others)[x] for x in one.arguments),
                threads=1))
        if not one.untraced:
            found[f'casadi.{name}'] = Call('robot', 1, partial(
                getattr(casadi, name), model,
                *(others[x] for x in (*one.options, *['link'] * one.by_link))))
    return found


def calls(robot: Any, folder: Path) -> dict[str, Call]:
    """
    Return the timed calls, by the name of the function below rbd_ros.

    Parameters
    ----------
    robot : Robot
        With joints of one coordinate; its ``model``, ``path``, a link ``tip`` and a state ``q v a
        tau`` are used.
    folder : pathlib.Path
        For temporary files.

    """
    model, q, v, a, tau, tip = robot.model, robot.q, robot.v, robot.a, robot.tau, robot.tip
    joint, pi = model.moving_joints[-1][0].name, models.inertial_parameters(model)
    loaded = rbd_ros.with_payload(model, tip, 1.0)
    contact = analysis.Contact(tip, 'surface')
    # A rod between root and tip closes a loop.
    rod = models.Constraint('rod', 'distance', model.link_names[0], tip, length=float(
        np.linalg.norm(rbd_ros.forward_kinematics(model, q)[-1, :3, 3])))
    closed = models.with_constraints(model, [rod])
    xml = robot.path.read_text(encoding='utf-8')
    graph = codegen.trace(model, 'gravity_torques')
    # The same robot in MuJoCo's format.
    mjcf = mujoco.MjSpec.from_string(mujoco_urdf(xml, model))
    mjcf.compile()

    def one(function: Callable, *arguments: Any, **options: Any) -> Call:
        return Call('call', 1, partial(function, *arguments, **options))

    def made(function: Callable, *arguments: Any, **options: Any) -> Call:
        return Call('robot', 1, partial(function, *arguments, **options))

    def acceleration(t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return a

    # A motion of several frequencies, and its torques.
    time = PERIOD * np.arange(SAMPLES)
    rates = 2.0 * np.pi * np.random.default_rng(1).uniform(0.5, 2.0, model.nv)
    Q, V = 0.5 * np.sin(rates * time[:, None]), 0.5 * rates * np.cos(rates * time[:, None])
    A = -rates ** 2 * Q
    Tau = batch.inverse_dynamics(loaded, Q, V, A)
    recording = identification.Recording('motion', model.velocity_names, time, Q, V, Tau)
    samples = identification.prepare(model, recording, delay=0.0)
    part = identification.partial(model, samples)
    load_part = identification.payload_partial(model, tip, samples)
    found = identification.fit(model, part)
    uncertain = identification.with_uncertainty(found, part, samples)
    table, drives, rods = (folder / name for name in ('motion.csv', 'drives.yaml', 'rods.yaml'))
    identification.write_recording(table, recording)
    models.save_drives(model, drives)
    rods.write_text(f'constraints: [{{name: rod, kind: distance, link_a: {rod.link_a}, link_b: '
                    f'{rod.link_b}, length: {rod.length!r}}}]\n', encoding='utf-8')
    names, columns = ['time', *model.velocity_names], (time, *Q.T)

    def sampled(function: Callable, *arguments: Any, **options: Any) -> Call:
        return Call('sample', SAMPLES, partial(function, *arguments, **options))

    rng = np.random.default_rng(2)
    many = [np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)]),
            *rng.normal(size=(3, STATES, model.nv))]

    def batched(function: Callable, *states: Any) -> Call:
        return Call('state', STATES, partial(function, model, *states, threads=1))

    return {
        **of_quantities(model, tip),
        'casadi.configuration_rate': made(casadi.configuration_rate, model),
        'difference': one(rbd_ros.difference, model, q, q + 0.1),
        'constraint_forces': one(rbd_ros.constraint_forces, closed, rbd_ros.neutral(closed),
                                 v[:closed.nv], a[:closed.nv]),
        'identify': made(rbd_ros.identify, model, Q, V, A, Tau),
        'integrate': one(rbd_ros.integrate, model, q, v, STEP),
        'neutral': one(rbd_ros.neutral, model),
        'random_configuration': one(rbd_ros.random_configuration, model, rng),
        'simulate': Call('step', STEPS, partial(
            rbd_ros.simulate, model, q, v, lambda t, q, v: tau,
            np.linspace(0.0, STEPS * STEP, STEPS + 1))),

        'analysis.analytic_jacobian': one(analysis.analytic_jacobian, model, q, tip),
        'analysis.check_contacts': one(analysis.check_contacts, model, q, [contact],
                                       np.ones((1, 6))),
        'analysis.effective_mass': one(analysis.effective_mass, model, q, tip, np.ones(3)),
        'analysis.energy': one(analysis.energy, model, q, v),
        'analysis.explicit_euler': one(analysis.explicit_euler, model, acceleration, 0.0, q, v,
                                       STEP),
        'analysis.friction_regressor': one(analysis.friction_regressor, model, v),
        'analysis.kinetic_energy': one(analysis.kinetic_energy, model, q, v),
        'analysis.link_com_jacobian': one(analysis.link_com_jacobian, model, q, tip),
        'analysis.link_com_world_jacobian': one(analysis.link_com_world_jacobian, model, q, tip),
        'analysis.potential_energy': one(analysis.potential_energy, model, q),
        # 100 waypoints on a line, without gravity and friction, which some drives cannot overcome
        'analysis.retime': one(
            analysis.retime, rbd_ros.with_gravity(model, np.zeros(3)),
            np.linspace(*many[0][:2], 100), acceleration_limit=np.full(model.nv, 10.0),
            friction=False),
        'analysis.runge_kutta_4': one(analysis.runge_kutta_4, model, acceleration, 0.0, q, v,
                                      STEP),
        'analysis.semi_implicit_euler': one(analysis.semi_implicit_euler, model, acceleration,
                                            0.0, q, v, STEP),
        'analysis.speed_limit': one(analysis.speed_limit, model, q, v, tip, 'chest'),
        'analysis.torque_deviation': sampled(analysis.torque_deviation, uncertain, Q, V, A),
        'analysis.trajectory_efforts': sampled(analysis.trajectory_efforts, model, time, Q, V),

        'codegen.casadi_function': made(codegen.casadi_function, graph),
        'codegen.load': made(codegen.load, model, ['inverse_dynamics'], directory=folder),
        'codegen.numpy_source': made(codegen.numpy_source, graph),
        'codegen.package_files': made(codegen.package_files, model, ['inverse_dynamics']),
        'codegen.sympy_expressions': made(codegen.sympy_expressions, graph),
        'codegen.trace': made(codegen.trace, model, 'inverse_dynamics'),
        'control.critical_damping': one(control.critical_damping, np.eye(6), np.ones(6), 1.0),
        'control.external_wrench': one(control.external_wrench, model, q, tau, tip),
        'control.friction_compensation': one(control.friction_compensation, model, v),
        'control.with_contact_calibration': sampled(
            control.with_contact_calibration, uncertain, recording),

        'batch.difference': batched(batch.difference, many[0], many[0] + 0.1),
        'batch.integrate': batched(batch.integrate, *many[:2], STEP),
        'batch.normal_equations': batched(batch.normal_equations, *many),
        'batch.regressor_factor': batched(batch.regressor_factor, *many),
        'batch.torque_regressor_product': batched(batch.torque_regressor_product, *many[:3], pi),
        'batch.torque_regressor_transposed_product': batched(
            batch.torque_regressor_transposed_product, *many),

        'identification.base_parameters': made(identification.base_parameters, model),
        'identification.diagnose': sampled(identification.diagnose, model, recording),
        'identification.estimate_delay': sampled(identification.estimate_delay, model, samples),
        'identification.excitation_limits': made(identification.excitation_limits, model),
        # Without effort limits: friction exceeds those of Talos' grippers.
        'identification.excite': made(
            identification.excite, model, identification.excitation_limits(
                model, effort=np.full(model.nv, np.inf)), steps=2),
        'identification.fit': made(identification.fit, model, part),
        'identification.fit_payload': made(identification.fit_payload, model, load_part),
        'identification.identify_drive_gains': made(
            identification.identify_drive_gains, model, tip, 1.0, (0.0, 0.0, 0.1),
            0.01 * np.ones(3), samples, samples),
        'identification.identify_payload': made(identification.identify_payload, model, tip, Q, V,
                                                A, Tau),
        'identification.merge': made(identification.merge, part, part),
        'identification.partial': sampled(identification.partial, model, samples),
        'identification.payload_partial': sampled(identification.payload_partial, model, tip,
                                                  samples),
        'identification.torque_errors': made(identification.torque_errors, part, found.values),
        # Several fits, with a part of the samples left out of each
        'identification.with_uncertainty': made(
            identification.with_uncertainty, found, part, samples),
        'identification.verdict': sampled(identification.verdict, model, part, found, samples),
        'identification.low_pass': sampled(identification.low_pass, Q, 1.0 / PERIOD, 10.0),
        'identification.motion_cutoff': sampled(identification.motion_cutoff, Q, V, 1.0 / PERIOD),
        'identification.prepare': sampled(identification.prepare, model, recording, delay=0.0),
        'identification.read_recording': sampled(identification.read_recording, table),
        'identification.write_recording': sampled(identification.write_recording, table,
                                                  recording),
        'identification.write_table': sampled(identification.write_table, folder / 'table.csv',
                                              names, *columns),

        'load_mjcf': made(rbd_ros.load_mjcf, mjcf.to_xml()),
        'load_urdf': made(rbd_ros.load_urdf, robot.path),
        'load_urdf_string': made(rbd_ros.load_urdf_string, xml),
        'model.build_model': made(models.build_model, 'robot', model.links, model.joints),
        'model.drive_parameter_names': one(models.drive_parameter_names, model),
        'model.drive_parameters': one(models.drive_parameters, model),
        'model.inconsistent_bodies': one(models.inconsistent_bodies, model, pi),
        'model.inertial_parameter_names': one(models.inertial_parameter_names, model),
        'model.inertial_parameters': one(models.inertial_parameters, model),
        'model.load_constraints': made(models.load_constraints, model, rods),
        'model.load_drives': made(models.load_drives, model, drives),
        'model.normalize': one(models.normalize, model, q),
        'model.save_drives': made(models.save_drives, model, drives),
        'model.with_drive_parameters': made(models.with_drive_parameters, model,
                                            models.drive_parameters(model)),
        'model.with_free_joints': made(models.with_free_joints, model, [joint]),
        'model.with_friction': made(models.with_friction, model, damping={joint: 0.1}),
        'model.with_constraints': made(models.with_constraints, model, [rod]),
        'model.with_inertial_parameters': made(models.with_inertial_parameters, model, pi),
        'model.with_springs': made(models.with_springs, model, stiffness={joint: 0.1}),
        'model.without_payload': made(models.without_payload, loaded, tip),
        'save_urdf': made(rbd_ros.save_urdf, model, folder / 'robot.urdf'),
        'subtree': made(rbd_ros.subtree, model, tip),
        'with_armature': made(rbd_ros.with_armature, model, {joint: 0.1}),
        'with_floating_base': made(rbd_ros.with_floating_base, model),
        'with_gravity': made(rbd_ros.with_gravity, model, (0.0, 0.0, -1.62)),
        'with_locked_joints': made(rbd_ros.with_locked_joints, model, {joint: 0.0}),
        'with_payload': made(rbd_ros.with_payload, model, tip, 1.0),
    }


def seconds(run: Callable[[], object]) -> float:
    """Return the duration of a call, s."""
    start = perf_counter()
    run()
    return perf_counter() - start


def main() -> None:
    """Measure, print and save."""
    import warnings

    from robots import PANDA, FINGERS, Robot, TALOS
    from timing import gauge, one_core, options, save, take_turns

    quick = options(__doc__).parse_args().quick
    warnings.simplefilter('ignore', rbd_ros.ModelWarning)
    rows: list[dict] = []
    with one_core(), TemporaryDirectory() as folder:
        for robot in (Robot('Panda', PANDA, 'small', locked=FINGERS),
                      Robot('Talos', TALOS, 'large')):
            for name, call in calls(robot, Path(folder)).items():
                times: Sequence[float] = [seconds(call.run)]
                if times[0] <= LONG:
                    times = take_turns({name: call.run}, quick=True)[name]
                us = 1e6 * float(np.median(times)) / call.count
                rows.append({'function': name, 'per': call.per, 'robot': robot.label,
                             'joints': robot.model.nv, 'us': us})
                print(f'{robot.label:8s} {name:46s} {us:10.2f} us a {call.per}', flush=True)
            gauge.wait_for_calm()
    save('functions', quick, {'rows': rows})


if __name__ == '__main__':
    main()
