# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
A ROS client: ask the dynamics node for the efforts that hold the robot where it is.

Fields of a request may be omitted: measured or zero values replace them. First start a robot and a
node: `ros2 launch rbd_ros dynamics.launch.py`, or `.venv/bin/simulated_robot &` and
`.venv/bin/dynamics_node`.

"""

from rbd_msgs.srv import InverseDynamics
import rclpy


def main():
    """Print and return the response."""
    rclpy.init()
    node = rclpy.create_node('client')
    client = node.create_client(InverseDynamics, '/dynamics/inverse_dynamics')
    if not client.wait_for_service(timeout_sec=10.0):
        raise SystemExit('no dynamics node is running')
    future = client.call_async(InverseDynamics.Request())
    rclpy.spin_until_future_complete(node, future, timeout_sec=10.0)
    answer = future.result()
    if answer is None or not answer.success:
        raise SystemExit(answer.message if answer else 'no response')
    for name, effort in zip(answer.joint_names, answer.effort):
        print(f'{name:16}{effort:9.3f} N m')
    rclpy.try_shutdown()


if __name__ == '__main__':
    main()
