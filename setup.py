# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Install rbd_ros, for colcon and for pip."""

from glob import glob
from xml.etree import ElementTree

from setuptools import find_packages, setup

package = ElementTree.parse('package.xml').getroot()
name = package.findtext('name')

setup(
    name=name,
    version=package.findtext('version'),
    description=' '.join(package.findtext('description').split()),
    license=package.findtext('license'),
    maintainer=package.findtext('maintainer'),
    maintainer_email=package.find('maintainer').get('email'),
    packages=find_packages(include=['rbd_ros', 'rbd_ros.*']),
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{name}']),
        (f'share/{name}', ['package.xml']),
        (f'share/{name}/config', glob('config/*.*')),
        (f'share/{name}/launch', glob('launch/*.launch.py')),
        (f'share/{name}/urdf', glob('urdf/*.urdf')),
    ],
    python_requires='>=3.10',
    # ROS packages are not named here: colcon and package.xml, or requirements-ros.txt, bring them.
    install_requires=['numba', 'numpy', 'scipy', 'urdf-parser-py'],
    extras_require={
        'demo': [
            'matplotlib',            # the plot of both phases
            'rich',                  # the live table
        ],
        'test': [
            'ament-flake8-plugins; extra == "never"',
        ],
    },
    entry_points={
        'console_scripts': [
            'dynamics_node = rbd_ros.ros.dynamics_node:main',
            'simulated_robot = rbd_ros.ros.simulated_robot:main',
        ],
    },
    zip_safe=True,
)
