# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How every node of this package starts, spins and ends."""

import os
import signal
from threading import Thread

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# s; a wait that never ends
FOR_EVER = 3600.0


class End:
    """
    The end that SIGINT or SIGTERM asks for, heard by a thread of its own.

    Python's handlers run between two steps of the interpreter, rclpy's take ROS away at once.
    This leaves a node the time for its last words, whatever it is doing. A second signal, which
    `ros2 launch` sends on Ctrl-C, changes nothing.

    """

    def __init__(self):
        self.asked, self.spinning = Future(), False
        self._pipe, written = os.pipe()
        os.set_blocking(written, False)
        signal.set_wakeup_fd(written, warn_on_full_buffer=False)
        for number in SIGNALS:
            signal.signal(number, lambda *_: None)
        Thread(target=self._wait, daemon=True).start()

    def _wait(self):
        os.read(self._pipe, 1)
        # A node that is still being made has nothing to bring to an end.
        if self.spinning:
            self.asked.set_result(None)
        else:
            rclpy.try_shutdown()


def _spin(node, events, end):
    """Spin a node, with rclpy's events executor or its single-threaded one, until the end."""
    if events:
        from rclpy.experimental.events_executor import EventsExecutor
        executor = EventsExecutor()
    else:
        executor = SingleThreadedExecutor()
    executor.add_node(node)
    end.spinning = True
    while rclpy.ok() and not end.asked.done():
        # The events executor's spin() keeps a core busy in rclpy 9.1; this does not.
        executor.spin_until_future_complete(end.asked, FOR_EVER)


def run(make_node, args=None, *, events=lambda node: False):
    """
    Make a node and spin it until SIGINT or SIGTERM, which are a normal end.

    Parameters
    ----------
    make_node : callable
        Returns the node; called once ROS is up. If the node has a method ``finish``, that is
        called at the end, while it can still publish.
    args : list of str, optional
        Command line; default ``sys.argv``.
    events : callable
        Given the node, returns whether to use the events executor.

    """
    end = End()
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except Exception as error:
        hint = ''
        if os.environ.get('ROS_SECURITY_ENABLE') == 'true':
            hint = ('; ROS_SECURITY_ENABLE is true: is there a keystore with an enclave for this '
                    'node in ROS_SECURITY_KEYSTORE? See doc/security.md')
        raise SystemExit(f'ROS does not start: {error}{hint}') from None
    try:
        node = make_node()
        _spin(node, events(node), end)
        if rclpy.ok() and hasattr(node, 'finish'):
            node.finish()
    except ExternalShutdownException:
        pass
    except Exception:
        # A signal during start-up takes ROS away from under the node's feet.
        if rclpy.ok():
            raise
    finally:
        rclpy.try_shutdown()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
