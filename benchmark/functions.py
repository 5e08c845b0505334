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
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, NamedTuple

import mujoco
import numpy as np
import rbd_ros
from rbd_ros import analysis, batch, casadi, codegen, control, identification
from rbd_ros import model as models
from rbd_ros.simulation.mujoco_robot import mujoco_urdf

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
    prescribed, joint = np.arange(model.nv) % 2 == 0, model.moving_joints[-1][0].name
    still, pi = analysis.Variation(), models.inertial_parameters(model)
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

    besides = {'link': tip, 'prescribed': prescribed}
    return {
        'all_terms': one(rbd_ros.all_terms, model, q, v),
        'bias_torques': one(rbd_ros.bias_torques, model, q, v),
        'body_jacobian': one(rbd_ros.body_jacobian, model, q, tip),
        'center_of_mass': one(rbd_ros.center_of_mass, model, q),
        'com_jacobian': one(rbd_ros.com_jacobian, model, q),
        'coriolis_matrix': one(rbd_ros.coriolis_matrix, model, q, v),
        'difference': one(rbd_ros.difference, model, q, q + 0.1),
        'forward_dynamics': one(rbd_ros.forward_dynamics, model, q, v, tau),
        'forward_dynamics_derivatives': one(rbd_ros.forward_dynamics_derivatives, model, q, v,
                                            tau),
        'forward_kinematics': one(rbd_ros.forward_kinematics, model, q),
        'constraint_forces': one(rbd_ros.constraint_forces, closed, rbd_ros.neutral(closed),
                                 v[:closed.nv], a[:closed.nv]),
        'friction_torques': one(rbd_ros.friction_torques, model, v),
        'gravity_torques': one(rbd_ros.gravity_torques, model, q),
        'hybrid_dynamics': one(rbd_ros.hybrid_dynamics, model, q, v, a, tau, prescribed),
        'hybrid_dynamics_derivatives': one(rbd_ros.hybrid_dynamics_derivatives, model, q, v, a,
                                           tau, prescribed),
        'identify': made(rbd_ros.identify, model, Q, V, A, Tau),
        'integrate': one(rbd_ros.integrate, model, q, v, STEP),
        'inverse_dynamics': one(rbd_ros.inverse_dynamics, model, q, v, a),
        'inverse_dynamics_derivatives': one(rbd_ros.inverse_dynamics_derivatives, model, q, v, a),
        'jacobian_dot': one(rbd_ros.jacobian_dot, model, q, v, tip),
        'mass_matrix': one(rbd_ros.mass_matrix, model, q),
        'neutral': one(rbd_ros.neutral, model),
        'random_configuration': one(rbd_ros.random_configuration, model, rng),
        'simulate': Call('step', STEPS, partial(
            rbd_ros.simulate, model, q, v, lambda t, q, v: tau,
            np.linspace(0.0, STEPS * STEP, STEPS + 1))),
        'spring_torques': one(rbd_ros.spring_torques, model, q),
        'task_space_dynamics': one(rbd_ros.task_space_dynamics, model, q, v, tip),
        'torque_regressor': one(rbd_ros.torque_regressor, model, q, v, a),
        'world_jacobian': one(rbd_ros.world_jacobian, model, q, tip),

        'analysis.acceleration_parameter_derivatives': one(
            analysis.acceleration_parameter_derivatives, model, q, v, tau),
        'analysis.analytic_jacobian': one(analysis.analytic_jacobian, model, q, tip),
        'analysis.centroidal_momentum_matrix': one(analysis.centroidal_momentum_matrix, model, q),
        'analysis.centroidal_momentum_matrix_dot': one(
            analysis.centroidal_momentum_matrix_dot, model, q, v),
        'analysis.com_jacobian_dot': one(analysis.com_jacobian_dot, model, q, v),
        'analysis.check_contacts': one(analysis.check_contacts, model, q, [contact],
                                       np.ones((1, 6))),
        'analysis.constrained_dynamics': one(analysis.constrained_dynamics, model, q, v, tau,
                                             [contact]),
        'analysis.constrained_inverse_dynamics': one(
            analysis.constrained_inverse_dynamics, model, q, v, a, [contact]),
        'analysis.coriolis_matrix_derivatives': one(
            analysis.coriolis_matrix_derivatives, model, q, v),
        'analysis.effective_mass': one(analysis.effective_mass, model, q, tip, np.ones(3)),
        'analysis.energy': one(analysis.energy, model, q, v),
        'analysis.energy_regressor': one(analysis.energy_regressor, model, q, v),
        'analysis.explicit_euler': one(analysis.explicit_euler, model, acceleration, 0.0, q, v,
                                       STEP),
        'analysis.forward_dynamics_derivative': one(
            analysis.forward_dynamics_derivative, model, q, v, tau, still),
        'analysis.friction_regressor': one(analysis.friction_regressor, model, v),
        'analysis.gravity_torques_derivatives': one(
            analysis.gravity_torques_derivatives, model, q),
        'analysis.hybrid_dynamics_derivative': one(
            analysis.hybrid_dynamics_derivative, model, q, v, a, tau, prescribed, still),
        'analysis.inverse_dynamics_derivative': one(
            analysis.inverse_dynamics_derivative, model, q, v, a, still),
        'analysis.jacobian_ddot': one(analysis.jacobian_ddot, model, q, v, a, tip),
        'analysis.jacobian_derivatives': one(analysis.jacobian_derivatives, model, q, tip),
        'analysis.jacobian_dot_derivatives': one(
            analysis.jacobian_dot_derivatives, model, q, v, tip),
        'analysis.kinetic_energy': one(analysis.kinetic_energy, model, q, v),
        'analysis.link_com_jacobian': one(analysis.link_com_jacobian, model, q, tip),
        'analysis.link_com_world_jacobian': one(analysis.link_com_world_jacobian, model, q, tip),
        'analysis.mass_matrix_derivatives': one(analysis.mass_matrix_derivatives, model, q),
        'analysis.matrices_dot': one(analysis.matrices_dot, model, q, v, a),
        'analysis.momentum_regressor': one(analysis.momentum_regressor, model, q, v),
        'analysis.parameter_derivatives': one(analysis.parameter_derivatives, model, q, v),
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
        'analysis.slotine_li_regressor': one(analysis.slotine_li_regressor, model, q, v, v, a),
        'analysis.speed_limit': one(analysis.speed_limit, model, q, v, tip, 'chest'),
        'analysis.torque_deviation': sampled(analysis.torque_deviation, uncertain, Q, V, A),
        'analysis.trajectory_efforts': sampled(analysis.trajectory_efforts, model, time, Q, V),
        'analysis.world_jacobian_dot': one(analysis.world_jacobian_dot, model, q, v, tip),

        **{f'casadi.{name}': made(function, model, *(
            besides[label] for label in list(signature(function).parameters)[1:]))
           for name, function in ((name, getattr(casadi, name)) for name in casadi.__all__)},

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

        'batch.all_terms': batched(batch.all_terms, *many[:2]),
        'batch.bias_torques': batched(batch.bias_torques, *many[:2]),
        'batch.body_jacobian': batched(batch.body_jacobian, many[0], tip),
        'batch.center_of_mass': batched(batch.center_of_mass, many[0]),
        'batch.centroidal_momentum_matrix': batched(batch.centroidal_momentum_matrix, many[0]),
        'batch.centroidal_momentum_matrix_dot': batched(batch.centroidal_momentum_matrix_dot,
                                                        *many[:2]),
        'batch.com_jacobian': batched(batch.com_jacobian, many[0]),
        'batch.com_jacobian_dot': batched(batch.com_jacobian_dot, *many[:2]),
        'batch.coriolis_matrix': batched(batch.coriolis_matrix, *many[:2]),
        'batch.difference': batched(batch.difference, many[0], many[0] + 0.1),
        'batch.forward_dynamics': batched(batch.forward_dynamics, *many[:3]),
        'batch.forward_dynamics_derivatives': batched(batch.forward_dynamics_derivatives,
                                                      *many[:3]),
        'batch.forward_kinematics': batched(batch.forward_kinematics, many[0]),
        'batch.gravity_torques': batched(batch.gravity_torques, many[0]),
        'batch.hybrid_dynamics': batched(batch.hybrid_dynamics, *many, prescribed),
        'batch.integrate': batched(batch.integrate, *many[:2], STEP),
        'batch.mass_matrix': batched(batch.mass_matrix, many[0]),
        'batch.inverse_dynamics': batched(batch.inverse_dynamics, *many[:3]),
        'batch.inverse_dynamics_derivatives': batched(batch.inverse_dynamics_derivatives,
                                                      *many[:3]),
        'batch.jacobian_dot': batched(batch.jacobian_dot, *many[:2], tip),
        'batch.normal_equations': batched(batch.normal_equations, *many),
        'batch.regressor_factor': batched(batch.regressor_factor, *many),
        'batch.torque_regressor': batched(batch.torque_regressor, *many[:3]),
        'batch.torque_regressor_product': batched(batch.torque_regressor_product, *many[:3], pi),
        'batch.torque_regressor_transposed_product': batched(
            batch.torque_regressor_transposed_product, *many),
        'batch.world_jacobian': batched(batch.world_jacobian, many[0], tip),
        'batch.world_jacobian_dot': batched(batch.world_jacobian_dot, *many[:2], tip),

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
