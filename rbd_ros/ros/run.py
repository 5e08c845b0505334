# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How every node of this package starts, spins and ends."""

import signal

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.task import Future

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# s; a wait that never ends
FOR_EVER = 3600.0


def _spin(node, events):
    """Spin a node, with rclpy's events executor or its single-threaded one, until ROS ends."""
    if events:
        from rclpy.experimental.events_executor import EventsExecutor
        executor = EventsExecutor()
    else:
        executor = SingleThreadedExecutor()
    executor.add_node(node)
    while rclpy.ok():
        # The events executor's spin() keeps a core busy in rclpy 9.1; this does not.
        executor.spin_until_future_complete(Future(), FOR_EVER)


def run(make_node, args=None, *, events=lambda node: False):
    """
    Make a node and spin it until SIGINT or SIGTERM, which are a normal end.

    Parameters
    ----------
    make_node : callable
        Returns the node; called once ROS is up.
    args : list of str, optional
        Command line; default ``sys.argv``.
    events : callable
        Given the node, returns whether to use the events executor.

    """
    # rclpy's own handlers end the spinning. Under them Python's would raise KeyboardInterrupt
    # anywhere, and a second signal, which `ros2 launch` sends on Ctrl-C, would kill.
    for number in SIGNALS:
        signal.signal(number, lambda *_: None)
    try:
        rclpy.init(args=args)
        node = make_node()
        _spin(node, events(node))
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
