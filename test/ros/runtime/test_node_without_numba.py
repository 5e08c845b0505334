# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A node where numba is missing, as with apt's packages alone, with a C compiler and without."""

from importlib import import_module
import signal
import subprocess
import sys
from threading import current_thread, main_thread
from time import monotonic, sleep

from diagnostic_msgs.msg import DiagnosticArray
from harness import joint_state, LATCHED, PATIENCE
from hidden_modules import environment
import numpy as np
import pytest
from rbd_msgs.msg import MatrixStamped
from rbd_ros import quantities
from rbd_ros.kernels.jit import c_compiler, compiled, machine_code
from rbd_ros.kernels.jit.compile_process import CompileProcess
from rbd_ros.kernels.jit.numba_backend import RUN_AS
from rbd_ros.ros.robot import current_robot
import rclpy
from robots import example_urdf, load_quietly, Oracle, random_state, relative_error
from sensor_msgs.msg import JointState
from std_msgs.msg import String

UR10 = example_urdf('ur10_robot.urdf')
# Rounding, over seven bodies.
ROUNDING = 1e-12
# s: it starts an interpreter, and every import is slow on a busy machine
START_UP = 60.0


@pytest.mark.parametrize('compiles', [True, False])
def test_without_numba_a_node_publishes_the_torques_of_pinocchio(peer, tmp_path, compiles):
    compiler = tmp_path / 'cc'
    if compiles:
        # The last option counts: optimizing takes most of the time.
        compiler.write_text('#!/bin/sh\nexec cc "$@" -O0\n')
        compiler.chmod(0o755)
    model = load_quietly(UR10)
    q, _, _ = random_state(model, 0)
    still = np.zeros(model.nv)
    states = peer.create_publisher(JointState, 'joint_states', 10)
    peer.create_publisher(String, 'robot_description', LATCHED).publish(
        String(data=UR10.read_text()))
    torques, matrices, reports = [], [], []
    peer.create_subscription(DiagnosticArray, '/diagnostics', reports.append, 10)
    peer.create_subscription(JointState, '/dynamics/gravity_torques', torques.append, 10)
    peer.create_subscription(MatrixStamped, '/dynamics/mass_matrix', matrices.append, 10)
    process = subprocess.Popen(
        [sys.executable, '-m', 'rbd_ros.ros.nodes', 'dynamics_node'], stderr=subprocess.PIPE,
        text=True, env={**environment(tmp_path, 'numba', 'llvmlite'), 'CC': str(compiler),
                        'XDG_CACHE_HOME': str(tmp_path)})
    try:
        end = monotonic() + START_UP
        while not (torques and matrices and reports):
            assert monotonic() < end
            states.publish(joint_state(model.velocity_names, q))
            rclpy.spin_once(peer, timeout_sec=0.05)
            sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    values = {one.key: one.value for one in reports[-1].status[0].values}
    assert values['kernels run as'] == RUN_AS['cc' if compiles else 'python']
    oracle = Oracle(UR10, model)
    assert torques[0].name == list(model.velocity_names)
    assert relative_error(torques[0].effort, oracle.tau(q, still, still)) < ROUNDING
    M = np.reshape(matrices[0].matrix.data, (model.nv, model.nv))
    assert relative_error(M, oracle.M(q)) < ROUNDING
    slow = [line for line in said.splitlines() if 'thousand times slower' in line]
    assert len(slow) == (not compiles)
    assert all('WARN' in line and '[dynamics]' in line for line in slow)
    assert 'Traceback' not in said and 'kernels ready' not in said
    assert bool(list(tmp_path.rglob('*.code'))) == compiles


class Codes(machine_code.Codes):
    """Machine code that is made when a test says so; that of gravity torques at once."""

    def begin(self):
        """Start no process."""

    def find(self, robot, name, options):
        """Return code, after compiling what a new robot waits for."""
        code = super().find(robot, name, options)
        if name == 'gravity_torques' and not code.over.is_set():
            self.work()
        return code

    def work(self):
        """Make what was requested until now."""
        while not self._requests.empty():
            self._make(CompileProcess(lambda: True), *self._requests.get())


def test_gravity_torques_come_while_all_other_topics_wait_for_machine_code(
        domain, harness, state, monkeypatch, tmp_path):
    monkeypatch.setattr(c_compiler, 'OPTIONS', ('-O0', *c_compiler.OPTIONS[1:]))
    monkeypatch.setattr(c_compiler, 'cache_root', lambda: tmp_path)
    monkeypatch.setattr(CompileProcess, 'call', lambda self, module, name, arguments: getattr(
        import_module(module), name)(*arguments))
    monkeypatch.setattr(machine_code, 'CODES', codes := Codes())
    for module in (quantities, current_robot):
        monkeypatch.setattr(module, 'WAY', 'cc')
    node = harness(None, topics=('~/gravity_torques', '~/mass_matrix', '~/dynamics'))
    monkeypatch.setattr(compiled, '_compile_process', CompileProcess(
        lambda: current_thread() is not main_thread()))
    node.describe(UR10.read_text())
    node.spin_until(lambda: node.node.robot is not None)
    node.answer(*state, topic='~/gravity_torques')
    assert not node.heard['~/mass_matrix'] and not node.heard['~/dynamics']
    assert node.node.publishing._withheld.awaited() == ['~/dynamics', '~/mass_matrix']
    codes.work()
    got = node.answer(*state)
    assert len(got.mass_matrix) == 36
    assert not node.node.publishing._withheld.awaited()
    assert not node.node.report.counts['errors']
