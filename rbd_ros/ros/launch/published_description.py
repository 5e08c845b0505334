# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Find out whether a robot description is being published already; for launch files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
import os
from time import monotonic
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions
from std_msgs.msg import String

PATIENCE = 2.0    # s until a publisher is discovered and its description has arrived
_numbers = count()    # of the nodes of this process
# The middleware's name for a node whose name has not arrived yet
UNKNOWN = '_NODE_NAME_UNKNOWN_'


@contextmanager
def temporary_node(namespace: str = '') -> Iterator[tuple[Any, Any] | None]:
    """Return a node with a context of its own, and its executor; None where ROS does not start."""
    context = rclpy.Context()
    try:
        rclpy.init(args=[], context=context, signal_handler_options=SignalHandlerOptions.NO)
        node = rclpy.create_node(f'rbd_ros_launch_{os.getpid()}_{next(_numbers)}',
                                 context=context, namespace=namespace)
    except Exception:
        yield None          # for example without security keys; the nodes will report it
        return
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    try:
        yield node, executor
    finally:
        executor.shutdown()
        node.destroy_node()
        context.try_shutdown()


def published_description(topic: str, is_over: Callable[[], bool] = lambda: False,
                          patience: float = PATIENCE) -> tuple[str, str] | None:
    """Return a publisher of a topic and its description, or None after `patience` seconds."""
    from rbd_ros.ros.robot.subscriptions import DESCRIPTION_QOS    # lazily: it is slow
    # A publisher alone does not count: ROS shows it for a while after it was killed.
    texts, publishers, end = list[str](), list[str](), monotonic() + patience
    with temporary_node() as parts:
        if parts is None:
            return None
        node, executor = parts
        node.create_subscription(String, topic, lambda message: texts.append(message.data),
                                 DESCRIPTION_QOS)
        # The name may arrive after the description.
        while not (texts and publishers) and not is_over() and monotonic() < end:
            executor.spin_once(timeout_sec=0.1)
            publishers = [f"{one.node_namespace.rstrip('/')}/{one.node_name}"
                          for one in node.get_publishers_info_by_topic(topic)
                          if one.node_name != UNKNOWN]
    return (publishers[0] if publishers else 'another node', texts[0]) if texts else None
