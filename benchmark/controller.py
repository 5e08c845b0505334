# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Times of update() of a generated controller for the demo arm, by mode, with allocations and locks.

Its handles are those of ros2_control 5 (Kilted) or newer if its setup file was sourced, otherwise
those of the stand-in in test/, which take almost no time. A tenth of the states is near limits.

"""

import os
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory

import rbd_ros
from rbd_ros.control.generated_controller import controller_files

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = Path(__file__).with_name('controller_timing.cpp')
STEPS = 200_000     # per mode
OPTIONS = ['-std=c++17', '-O3', '-DPACKAGE=arm_controller']
# Added to the package's CMakeLists.txt.
TARGET = f"""
add_executable(benchmark {PROGRAM} arm_dynamics.c)
target_compile_definitions(benchmark PRIVATE PACKAGE=arm_controller)
target_include_directories(benchmark PRIVATE .)
target_link_libraries(benchmark PRIVATE controller_interface::controller_interface
  hardware_interface::hardware_interface pluginlib::pluginlib rclcpp::rclcpp)
"""


def build(folder: Path, real: bool) -> Path:
    """Write and compile the program; return its path."""
    model = rbd_ros.load_urdf(ROOT / 'urdf/demo_arm.urdf')
    for name, text in controller_files(model, prefix='arm').items():
        (folder / name).write_text(text)
    if real:
        with (folder / 'CMakeLists.txt').open('a') as file:
            file.write(TARGET)
        for words in (['-S', '.', '-B', 'build', *os.environ.get('CMAKE_ARGS', '').split()],
                      ['--build', 'build', '--target', 'benchmark']):
            subprocess.run(['cmake', *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        return folder / 'build/benchmark'
    subprocess.run(['gcc', '-std=c99', '-O3', '-c', 'arm_dynamics.c'], cwd=folder, check=True)
    subprocess.run(['g++', *OPTIONS, '-DROS2_CONTROL=5', '-I.', '-I',
                    ROOT / 'test/control/ros2_control', PROGRAM, 'arm_dynamics.o', '-ldl', '-o',
                    'benchmark'], cwd=folder, check=True)
    return folder / 'benchmark'


def main() -> None:
    """Print the times."""
    real = any((Path(one) / 'share/controller_interface').is_dir()
               for one in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep))
    with TemporaryDirectory() as folder:
        program = build(Path(folder), real)
        print('update() of 7 joints with ' + ('ros2_control' if real else 'the stand-in for '
                                              'ros2_control'), flush=True)
        subprocess.run([program, str(STEPS)], check=True)


if __name__ == '__main__':
    sys.exit(main())
