# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters ``qos_overrides.TOPIC.publisher.depth`` and their kin, for every topic of a node."""

from copy import copy
from typing import Any

from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription


class QosOverrides(Node):
    """A node whose users choose history, depth and reliability of its topics by parameters."""

    def create_publisher(self, kind: Any, topic: str, qos: QoSProfile | int,    # type: ignore
                         **options: Any) -> Publisher[Any]:
        """Create a publisher, with the parameters of its quality of service."""
        # rclpy creates the publisher of events before parameters can be declared.
        if kind is not ParameterEvent:
            # rclpy writes overrides to the profile, which others may share.
            qos = copy(qos)
            options['qos_overriding_options'] = QoSOverridingOptions.with_default_policies()
        return super().create_publisher(kind, topic, qos, **options)

    def create_subscription(self, kind: Any, topic: str, callback: Any,     # type: ignore
                            qos: QoSProfile | int, *, overridable: bool = True,
                            **options: Any) -> Subscription[Any]:
        """Create a subscription, with the parameters of its quality of service if overridable."""
        if overridable:
            qos = copy(qos)
            options.setdefault('qos_overriding_options',
                               QoSOverridingOptions.with_default_policies())
        return super().create_subscription(kind, topic, callback, qos, **options)
