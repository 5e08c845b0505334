# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How every node of this package starts, spins and ends.

Nothing but Python itself is imported until signals are heard: whoever ends a node while it is
being loaded, too, gets an exit code of 0.

"""

import importlib
import os
import signal
import sys
from threading import Lock, Thread
from time import sleep

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# s; a wait that never ends
FOR_EVER = 3600.0
# s, that a program which does not spin yet is given to end by itself once ROS is gone
GRACE = 2.0


class End:
    """
    The end that SIGINT or SIGTERM asks for, heard by a thread of its own.

    Python's handlers run between two steps of the interpreter, rclpy's take ROS away at once.
    This leaves a node the time for its last words, whatever it is doing; a program that does not
    spin yet has none, and ends at once. A second signal, which `ros2 launch` sends on Ctrl-C,
    changes nothing.

    """

    def __init__(self):
        self._lock, self._finish = Lock(), None
        self._pipe, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)
        Thread(target=self._wait, name='end', daemon=True).start()

    def call(self, finish):
        """Let a function be called instead of ending at once, from now on."""
        with self._lock:
            self._finish = finish

    def _wait(self):
        os.read(self._pipe, 1)
        with self._lock:
            if self._finish is not None:
                self._finish()
                return
            # What ROS has begun, shared memory perhaps, is put away.
            Thread(target=_leave_ros, daemon=True).start()
            sleep(GRACE)
            os._exit(0)


def _leave_ros():
    """Take ROS down if it is up, and end the program."""
    try:
        sys.modules['rclpy'].try_shutdown()
    except (AttributeError, KeyError):
        pass                # it is not imported, or not as a whole
    finally:
        os._exit(0)


def _spin(node, events, end):
    """Spin a node, with rclpy's events executor or its single-threaded one, until the end."""
    import rclpy
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.task import Future
    if events:
        from rclpy.experimental.events_executor import EventsExecutor
        executor = EventsExecutor()
    else:
        executor = SingleThreadedExecutor()
    executor.add_node(node)
    asked = Future()
    end.call(lambda: asked.set_result(None) if not asked.done() else None)
    while rclpy.ok() and not asked.done():
        # The events executor's spin() keeps a core busy in rclpy 9.1; this does not.
        executor.spin_until_future_complete(asked, FOR_EVER)


def _start_ros(args):
    """Initialise ROS, or end the program with the reason why that is not possible."""
    import rclpy
    from rclpy.signals import SignalHandlerOptions
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        hint = ''
        if os.environ.get('ROS_SECURITY_ENABLE') == 'true':
            hint = ('; ROS_SECURITY_ENABLE is true: is there a keystore with an enclave for this '
                    'node in ROS_SECURITY_KEYSTORE? See doc/security.md')
        raise SystemExit(f'ROS does not start: {error}{hint}') from None


def run(module, name, args=None):
    """
    Make a node and spin it until SIGINT or SIGTERM, which are a normal end.

    Parameters
    ----------
    module, name : str
        Module and name of the node's class. A method ``finish`` of it is called at the end, while
        it can still publish; ``uses_events`` says whether it wants the events executor; its
        ``error`` is the class of errors whose message is all that a user needs.
    args : list of str, optional
        Command line; default ``sys.argv``.

    """
    end = End()
    args = sys.argv if args is None else args
    kind = getattr(importlib.import_module(module), name)
    if {'-h', '--help'} & set(args[1:]):
        print(kind.usage())
        return
    import rclpy
    from rclpy.executors import ExternalShutdownException
    _start_ros(args)
    try:
        node = kind(alone=True)
        _spin(node, node.uses_events(), end)
        if rclpy.ok():
            node.finish()
    except kind.errors as error:
        raise SystemExit(f'{name}: {error}') from None
    except ExternalShutdownException:
        pass
    except Exception:
        # Something else in this process took ROS away from under the node's feet.
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def dynamics_node():
    """Run the dynamics node until it is told to end."""
    run('rbd_ros.ros.dynamics_node', 'DynamicsNode')


def simulated_robot():
    """Run the simulated robot until it is told to end."""
    run('rbd_ros.ros.simulated_robot', 'SimulatedRobot')
