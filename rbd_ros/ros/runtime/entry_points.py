# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Start, spin and end of every node of this package."""

# Only the standard library is imported before signals are handled, so that a node that is stopped
# while it loads exits with code 0, too.

from __future__ import annotations

from functools import partial
import gc
import importlib
import os
import signal
import sys
from threading import Lock, Thread
from time import sleep

# True for type checkers; importing `typing` would delay the handling of signals.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable    # noqa: I300
    from typing import Any

    from rclpy.node import Node

# Read when NumPy is imported: with more threads, small matrices take twice the CPU time.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
SIGNALS = (signal.SIGINT, signal.SIGTERM)
GRACE = 1.0    # s for a program that does not spin yet to end by itself once ROS is shut down


class End:
    """
    Handles SIGINT and SIGTERM in a thread of its own.

    Python's handlers run only between two bytecodes, and rclpy's shut ROS down at once. This one
    lets a node send its last commands; a program that does not spin yet ends at once. A second
    signal, which `ros2 launch` sends on Ctrl-C, has no effect.

    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._finish: Callable[[], object] | None = None
        self._pipe, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)
        Thread(target=self._wait, name='end', daemon=True).start()

    def call(self, finish: Callable[[], object]) -> None:
        """Call a function instead of ending at once."""
        with self._lock:
            self._finish = finish

    def _wait(self) -> None:
        os.read(self._pipe, 1)
        with self._lock:
            if self._finish is not None:
                self._finish()
                return
            # Let ROS clean up, shared memory for example.
            Thread(target=_leave_ros, daemon=True).start()
            sleep(GRACE)
            os._exit(0)


def _leave_ros() -> None:
    try:
        sys.modules['rclpy'].try_shutdown()
    except (AttributeError, KeyError):
        pass                # rclpy is not imported, or not completely
    finally:
        os._exit(0)


def _spin(node: Node, events: bool, end: End) -> None:
    from rbd_ros.ros.runtime.rclpy_workarounds import make_executor, spin
    from rclpy.task import Future
    executor = make_executor(events)
    executor.add_node(node)
    asked: Future[None] = Future()
    end.call(lambda: asked.set_result(None) if not asked.done() else None)
    spin(executor, asked)


def _load(module: str, name: str) -> Any:
    """Return the class of a node, or end the program with the name of the missing module."""
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        if (error.name or '').startswith('rbd_ros'):
            raise
        raise missing(module.rpartition('.')[2], error) from None


def missing(program: str, error: ImportError) -> SystemExit:
    """Return the exit of a program that does not find ROS, with advice."""
    reason = str(error).partition('\n')[0]
    return SystemExit(
        f'{program}: {reason}. Nodes need ROS 2 and rbd_msgs: source the setup.bash of the '
        'workspace in which both packages are built, or type `make setup` in the repository. '
        'The library and the command rbd_ros need neither')


def _create(kind: Any) -> Any:
    """Create a node, or end the program with the reason why ROS refuses it."""
    import rclpy
    from rclpy.impl.implementation_singleton import rclpy_implementation
    try:
        return kind(alone=True)
    except rclpy_implementation.RCLError as error:
        # DDS creates its participant, and reads security keys, with the first node.
        if rclpy.ok():
            raise _refusal(error) from None
        raise


def _refusal(error: Exception) -> SystemExit:
    hint = ''
    if os.environ.get('ROS_SECURITY_ENABLE') == 'true':
        hint = ('; ROS_SECURITY_ENABLE is true: is there a keystore with an enclave for this node '
                'in ROS_SECURITY_KEYSTORE, and does the middleware support security? That from '
                'PyPI does not. See doc/security.md')
    return SystemExit(f'ROS does not start: {" ".join(str(error).split())}{hint}')


def run(module: str, name: str, args: list[str] | None = None) -> None:
    """
    Create the node `name` of a module and spin it until SIGINT or SIGTERM, which are a normal end.

    Its class has methods ``uses_events``, whether it needs the events executor, and ``finish``,
    called at the end while it can still publish. Of its exceptions ``errors`` only the message is
    shown, after the name ``program``.

    """
    end = End()
    args = sys.argv if args is None else args
    kind = _load(module, name)
    if {'-h', '--help'} & set(args[1:]):
        print(kind.usage())
        return
    from rbd_ros.kernels.jit.numba_backend import warning
    import rclpy
    from rclpy.executors import ExternalShutdownException
    from rclpy.signals import SignalHandlerOptions
    slow = warning()
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        raise _refusal(error) from None
    try:
        node = _create(kind)
        if slow:
            node.get_logger().warning(slow)
        _spin(node, node.uses_events(), end)
        if rclpy.ok():
            node.finish()
    except kind.errors as error:
        raise SystemExit(f'{kind.program}: {error}') from None
    except ExternalShutdownException:
        pass
    except Exception:
        # Errors after something else has shut ROS down are part of a normal end.
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        # Otherwise Python would search all objects of numba for garbage: seconds under load.
        gc.freeze()


dynamics_node = partial(run, 'rbd_ros.ros.nodes.dynamics_node', 'DynamicsNode')
torque_controller = partial(run, 'rbd_ros.ros.nodes.torque_controller', 'TorqueController')
simulated_robot = partial(run, 'rbd_ros.ros.nodes.simulated_robot', 'SimulatedRobot')
mujoco_robot = partial(run, 'rbd_ros.ros.nodes.mujoco_robot', 'RobotInMujoco')
viewer = partial(run, 'rbd_ros.ros.nodes.viewer', 'ViewerNode')
