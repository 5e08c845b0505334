# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Start the dynamics node and what belongs to it.

Without any argument: the demo arm, simulated, held by its gravity torques.

"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, OpaqueFunction
from launch.substitutions import Command, LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterValue

SHARE = Path(get_package_share_directory('rbd_ros'))
DEMO_ARM = str(SHARE / 'urdf' / 'demo_arm.urdf')
# rad; where the demo arm begins, bent forward so that there is something to hold
DEMO_POSITIONS = [0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0]

ARGUMENTS = {
    'model': (DEMO_ARM,
              'URDF or xacro file of the robot; empty: somebody else publishes the description'),
    'joint_states': ('joint_states', 'topic of the joint states'),
    'params': (str(SHARE / 'config' / 'dynamics.param.yaml'), 'parameters of the dynamics node'),
    'namespace': ('', 'namespace of all nodes'),
    'use_sim_time': ('false', 'whether time comes from /clock'),
    'sim': ('', 'whether to simulate the robot; empty: if no model is named'),
    'robot_state_publisher': ('true', 'whether to start robot_state_publisher, which publishes '
                              'the description and the frames that RViz needs'),
    'rviz': ('false', 'whether to start RViz'),
}


def make_nodes(context):
    """Return the nodes, once the values of the arguments are known."""
    value = {name: LaunchConfiguration(name).perform(context) for name in ARGUMENTS}

    def wanted(name):
        return value[name].lower() in ('true', '1', 'yes', 'on')

    common = {'use_sim_time': wanted('use_sim_time')}
    states = ('joint_states', value['joint_states'])
    nodes = [Node(package='rbd_ros', executable='dynamics_node', name='dynamics',
                  parameters=[value['params'], common], remappings=[states], output='screen')]

    demo = value['model'] == DEMO_ARM
    start = {'initial_positions': DEMO_POSITIONS} if demo else {}
    if value['model']:
        text = Command(['xacro ', value['model']])
        if not value['model'].endswith('.xacro'):
            text = Path(value['model']).read_text()
        description = {'robot_description': ParameterValue(text, value_type=str)}
        if wanted('robot_state_publisher'):
            nodes.append(Node(package='robot_state_publisher', executable='robot_state_publisher',
                              parameters=[description, common], remappings=[states]))
        if wanted('sim') if value['sim'] else demo:
            nodes.append(Node(package='rbd_ros', executable='simulated_robot',
                              parameters=[description, common, start], output='screen',
                              remappings=[states, ('~/commands', 'dynamics/effort_commands')]))
    if wanted('rviz'):
        nodes.append(Node(package='rviz2', executable='rviz2', parameters=[common],
                          arguments=['-d', str(SHARE / 'config' / 'dynamics.rviz')]))
    return [GroupAction([PushRosNamespace(value['namespace']), *nodes])]


def generate_launch_description():
    """Return what `ros2 launch rbd_ros dynamics.launch.py` starts."""
    return LaunchDescription([
        *(DeclareLaunchArgument(name, default_value=default, description=description)
          for name, (default, description) in ARGUMENTS.items()),
        OpaqueFunction(function=make_nodes)])
