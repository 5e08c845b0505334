# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Activates the effort controller of the bring-up, and stops it when commands stop."""

from collections import deque
import json
import signal
import sys
from time import monotonic
from typing import Any

from rbd_ros.ros.commands.controllers import (
    activate, Call, caller, controllers, deactivate, differences, EFFORTS)
from rbd_ros.ros.runtime.rclpy_workarounds import QosOverrides
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import Float64MultiArray

# s, for services to appear: at the start on a busy machine; at the end they may be gone.
START, END = 5.0, 2.0


def start(call: Call, wanted: dict[str, Any]) -> str:
    """Activate the controller if it is the one of the file; return why not, or ''."""
    loaded = controllers(call)
    if loaded is None:
        return 'no controller manager answers'
    if EFFORTS not in loaded:
        return f'{EFFORTS} is not loaded'
    return differences(call, loaded[EFFORTS], wanted) or activate(call, EFFORTS)


def main() -> None:
    """Guard the controller until a signal comes or commands stop: exit code 0 or 1."""
    patience, wanted = float(sys.argv[1]), json.loads(sys.argv[2])
    ending: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ending.append(1))
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    node, executor = QosOverrides('controller_guard'), SingleThreadedExecutor()
    executor.add_node(node)
    log = node.get_logger()
    times = deque([monotonic()], maxlen=1)
    node.create_subscription(Float64MultiArray, f'{EFFORTS}/commands',
                             lambda _: times.append(monotonic()), 1)
    if why_not := start(caller(node, executor, START), wanted):
        raise SystemExit(f'controller_guard: {why_not}')
    log.info(f'{EFFORTS} is active; it is stopped when commands stop for {patience:g} s')
    times.append(monotonic())
    # At the end, too: the node sends its last commands first.
    while monotonic() - times[0] < patience:
        executor.spin_once(timeout_sec=0.05)
    deactivate(caller(node, executor, END), EFFORTS)
    if not ending:
        raise SystemExit(f'controller_guard: no commands for {patience:g} s: {EFFORTS} was '
                         'deactivated. The hardware decides which torque remains')


if __name__ == '__main__':
    main()
