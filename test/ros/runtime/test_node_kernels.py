# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A node goes on while kernels are compiled that it needs, and catches up afterwards."""

from importlib import import_module
from threading import current_thread, Event, main_thread, Thread
from time import sleep
from types import SimpleNamespace

from harness import keep_sending
import numpy as np
import pytest
from rbd_msgs.srv import SetMode
from rbd_ros.kernels.articulated_bodies import articulated_bodies
from rbd_ros.kernels.composite_bodies import composite_bodies
from rbd_ros.kernels.jit import compiled
from rbd_ros.kernels.jit.kernel_cache import KernelCache
from rbd_ros.kernels.jit.numba_backend import COMPILES
from rbd_ros.kernels.link_jacobians import jacobian_columns
from rbd_ros.kernels.newton_euler import newton_euler, newton_euler_at_rest
from rbd_ros.kernels.tree.link_poses import link_poses
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.runtime.kernels import Kernels
from rbd_ros.ros.runtime.report import Log, OK, WARN
from rbd_ros.ros.runtime.worker import Worker
import rclpy
from robots import example_urdf
from visualization_msgs.msg import MarkerArray

# s: many states come meanwhile
COMPILING = 0.5
UR10 = example_urdf('ur10_robot.urdf').read_text()
pytestmark = [pytest.mark.usefixtures('domain'), pytest.mark.skipif(
    not COMPILES, reason='nothing is compiled')]


class Later:
    """Stands for the process that compiles: kernels are requested, and made when told to."""

    def __init__(self):
        self.requests = []

    def may_wait(self):
        return current_thread() is not main_thread()

    def compile_kernel(self, function, types):
        """Leave it to the program."""

    def request(self, kernel, types):
        if (kernel, types) not in self.requests:
            self.requests.append((kernel, types))

    def work(self):
        """Make what was requested until now."""
        while self.requests:
            compiled.compile_for(*self.requests.pop())


class Compiler(KernelCache):
    """Stands for a compiler: it takes a while, but no work; and for a cache that holds nothing."""

    def holds(self, *_):
        return False

    def load_overload(self, *arguments):
        sleep(COMPILING)
        return super().load_overload(*arguments)


@pytest.fixture
def later():
    """Return a stand-in for the other process."""
    return Later()


@pytest.fixture
def start(harness, later, monkeypatch):
    """Return a function that starts a node for which a kernel is compiled nowhere yet."""
    def start(kernel, **options):
        node = harness(None, **options)
        fresh = compiled.kernel(kernel.py_func)
        fresh._cache = Compiler(kernel.py_func, compiled._directory, compiled.compiled_elsewhere)
        monkeypatch.setattr(import_module(kernel.py_func.__module__), kernel.__name__, fresh)
        monkeypatch.setattr(compiled, '_compile_process', later)
        node.describe(UR10)
        node.spin_until(lambda: node.node.robot is not None)
        return node
    return start


def test_only_a_topic_whose_kernel_is_missing_waits(start, state, later):
    node = start(jacobian_columns, task_link='tool0',
                 topics=('~/dynamics', '~/task_jacobian'))
    for count in range(1, 6):
        node.answer(*state)
        assert len(node.heard['~/dynamics']) == count
    assert not node.heard['~/task_jacobian']
    assert len(later.requests) == 1
    # While its states come, an operator reads what is awaited, and then no longer.
    keep_sending(node, state, lambda: any(
        'kernels are being compiled for ~/task_jacobian' in report.status[0].message
        and report.status[0].level == WARN for report in node.heard['/diagnostics']))
    later.work()
    J = node.answer(*state, topic='~/task_jacobian').matrix
    assert len(J.data) == 36
    keep_sending(node, state, lambda: node.heard['/diagnostics'][-1].status[0].level == OK)
    assert not later.requests


def test_a_late_subscriber_receives_the_output_once_its_kernel_is_ready(start, state, later):
    node, markers = start(link_poses, topics=('~/dynamics',)), []
    node.answer(*state)
    assert not later.requests
    node.peer.create_subscription(MarkerArray, '/dynamics/markers', markers.append, 10)
    keep_sending(node, state, lambda: later.requests)
    before = len(node.heard['~/dynamics'])
    node.answer(*state)
    assert len(node.heard['~/dynamics']) > before
    assert not markers
    assert node.node.publishing._withheld.awaited() == ['~/markers']
    later.work()
    keep_sending(node, state, lambda: markers)
    assert not node.node.publishing._withheld.awaited()
    assert not node.node.report.counts['errors']


def test_states_are_answered_while_the_check_of_efforts_waits_for_its_kernel(
        start, state, later):
    node, (names, q, v) = start(newton_euler_at_rest, topics=('~/dynamics',)), state
    at_rest = names, q, np.zeros_like(v), np.full_like(v, 1000.0)
    keep_sending(node, at_rest, lambda: later.requests)
    before = len(node.heard['~/dynamics'])
    node.answer(*at_rest)
    assert len(node.heard['~/dynamics']) > before
    assert not node.node.report.counts['errors']
    assert not node.node.effort_check.finding
    later.work()
    keep_sending(node, at_rest, lambda: node.node.effort_check.finding)


def test_states_without_velocities_need_no_kernel_that_is_not_ready(start, state, later):
    names, q, _ = state
    node = start(composite_bodies,
                 topics=('~/dynamics', '~/gravity_torques', '~/mass_matrix'))
    # The thread of the worker has compiled them before the robot was used.
    node.answer(names, q, topic='~/mass_matrix')
    node.answer(*state)
    assert not later.requests


@pytest.mark.parametrize('mode, kernel', [
    ('gravity', newton_euler_at_rest), ('pd_gravity', newton_euler_at_rest),
    ('computed_torque', newton_euler), ('hybrid', articulated_bodies)])
def test_commands_begin_after_all_kernels_of_the_law_are_ready(start, state, later, mode, kernel):
    node = start(kernel, kind=TorqueController, mode=mode, topics=('~/effort_commands',))
    keep_sending(node, state, lambda: len(node.heard['~/effort_commands']) > 50)
    assert not node.node.publishing._withheld.awaited()
    assert not later.requests


def test_a_mode_whose_kernels_are_being_compiled_is_refused_and_the_present_one_goes_on(
        start, state, later):
    node = start(newton_euler, kind=TorqueController, mode='gravity',
                 topics=('~/effort_commands',))
    keep_sending(node, state, lambda: node.heard['~/effort_commands'])
    got = node.call(SetMode, 'set_mode', mode='computed_torque')
    assert not got.success
    assert 'being compiled' in got.message
    assert node.node.mode == 'gravity'
    count = len(node.heard['~/effort_commands'])
    keep_sending(node, state, lambda: len(node.heard['~/effort_commands']) > count + 10)
    assert not node.node.publishing._withheld.awaited()
    later.work()
    got = node.call(SetMode, 'set_mode', mode='computed_torque')
    assert got.success, got.message
    assert not later.requests


class Order:
    """Kernels that note when they are compiled, in a process that compiles in another one."""

    def __init__(self, monkeypatch):
        self.made, self.failures, self.running = [], [], True
        monkeypatch.setattr(compiled, '_compile_process', None)
        self.kernels = Kernels(Log(rclpy.logging.get_logger('order')), self.failures.append, False)
        self.kernels._compile_process = self

    def is_running(self):
        """Return whether something had to be compiled."""
        return self.running

    def close(self):
        self.made.append('end')

    def step(self, name):
        """Return what a step of a warm-up yields, after compiling a kernel."""
        compiled.compile_for(SimpleNamespace(
            overloads={}, compile=lambda types: self.made.append(name)), (name,))
        return name, 0.0


@pytest.fixture
def order(monkeypatch):
    """Return an order in which nothing is compiled yet."""
    return Order(monkeypatch)


def wait_for(thread):
    thread.join(120.0)
    assert not thread.is_alive()


def test_kernels_that_a_thread_waits_for_are_compiled_first(order):
    begun, go_on = Event(), Event()

    def steps():
        yield order.step('first')
        begun.set()
        go_on.wait(120.0)
        yield order.step('second')
        yield order.step('third')
    assert order.kernels.make(steps(), lambda: True)
    begun.wait(120.0)
    assert order.made == ['first']
    assert not order.kernels.ready
    with compiled._compiling:
        # It waits for what is being compiled now.
        wanted = Thread(target=order.step, args=('wanted',))
        wanted.start()
        while not compiled.foreground_busy():
            sleep(0.01)
        go_on.set()
        # The next step waits, too, and is not to come before what is wanted.
    wait_for(wanted)
    wait_for(order.kernels._thread)
    assert order.made.index('wanted') < order.made.index('third')
    assert order.made[0] == 'first'
    assert order.made[-1] == 'end'
    assert order.kernels.ready


def test_optional_kernels_wait_until_the_worker_is_idle(order):
    begun, go_on = Event(), Event()

    def work():
        order.step('robot')
        begun.wait(120.0)
        for name in ('law', 'and more'):
            order.step(name)

    def steps():
        yield order.step('first')
        go_on.wait(120.0)
        yield order.step('second')
        yield order.step('third')
    assert order.kernels.make(steps(), lambda: True)
    worker = Worker(object, order.failures.append)
    worker.submit(work)
    while 'robot' not in order.made:
        sleep(0.01)
    go_on.set()
    while 'second' not in order.made:
        sleep(0.01)
    begun.set()
    wait_for(order.kernels._thread)
    worker.close()
    assert order.made == ['first', 'robot', 'second', 'law', 'and more', 'third', 'end']
    assert not order.failures


def test_all_that_is_in_the_cache_is_loaded_before_a_node_begins(order):
    order.running = False
    assert order.kernels.make((order.step(name) for name in 'abc'), lambda: True)
    assert order.kernels.ready
    assert order.made == ['a', 'b', 'c']
    # Again, after a clean-up; and no further when ROS was shut down.
    assert order.kernels.make((order.step(name) for name in 'de'), lambda: True)
    assert not order.kernels.make((order.step(name) for name in 'f'), lambda: False)
    assert order.made[3:] == ['d', 'e', 'f']


def test_an_error_in_the_background_is_reported(order):
    def steps():
        yield order.step('first')
        raise RuntimeError('no')
    assert order.kernels.make(steps(), lambda: True)
    wait_for(order.kernels._thread)
    assert [str(error) for error in order.failures] == ['no']
    assert not order.kernels.ready
    assert order.made == ['first', 'end']
