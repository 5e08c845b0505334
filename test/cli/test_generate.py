# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros generate``: the files, the options, what is refused, and the page's program."""

from hashlib import sha256
from pathlib import Path
import re
import shutil
import subprocess
from xml.etree import ElementTree

from command_line import ARM, code_of, one_line, ROOT
import pytest
from rbd_ros.codegen import FUNCTIONS
import yaml


def test_a_generated_package_documents_its_origin(tmp_path, capsys):
    drives = tmp_path / 'dynamics.param.yaml'
    drives.write_text('/**: {ros__parameters: {drives: {joints: [shoulder_pan], '
                      'friction: [0.5]}}}')
    folder = tmp_path / 'new' / 'package'
    assert code_of('generate', ARM, '-o', str(folder), '--params', str(drives), '--functions',
                   'friction_torques', 'hybrid_dynamics', '--prescribed', 'elbow', 'wrist_pitch',
                   '--gravity', '0', '-9.81', '0') == 0
    assert 'demo_arm_dynamics.h, demo_arm_dynamics.c' in capsys.readouterr().out
    names = {'demo_arm_dynamics.h', 'demo_arm_dynamics.c', 'test_demo_arm_dynamics.c',
             'CMakeLists.txt', 'package.xml', 'README.md'}
    files = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(files) == names
    assert all('SPDX-License-Identifier: 0BSD' in text for text in files.values())
    readme = files['README.md']
    for path in (Path(ARM), drives):
        assert f'- `{path.name}`: SHA-256 `{sha256(path.read_bytes()).hexdigest()}`' in readme
    assert '- prescribed: elbow, wrist_pitch\n' in readme and '(0, -9.81, 0) m/s^2' in readme
    assert '| 3 | `elbow` | rad, rad/s, rad/s^2, N m |' in readme
    # Friction acts in the direction of the velocity.
    assert '((v[0] > 0.0 ? 1.0 : 0.0) - (v[0] < 0.0 ? 1.0 : 0.0))' in files['demo_arm_dynamics.c']


@pytest.mark.parametrize('words, message', [
    (['--functions', 'jacobian'], '--link belongs to world_jacobian, jacobian, jacobian_dot'),
    (['--link', 'tool'], '--link belongs to'),
    (['--functions', 'hybrid_dynamics'], '--prescribed belongs to hybrid_dynamics'),
    (['--functions', 'hybrid_dynamics', '--prescribed', 'knee'], "no coordinate 'knee'"),
    (['--functions', 'jacobian', '--link', 'hand'], "has no link 'hand'"),
    (['--functions', 'simulate'], "'simulate'"),
    (['--functions', 'task_space_dynamics', '--link', 'elbow_link'], 'too few joints'),
    (['--controller', '--float'], '--controller has its own functions'),
    (['--controller', '--link', 'hand'], "has no link 'hand'"),
    (['--controller', '--floating-base'], "joint 'base' is free")])
def test_wrong_options_are_refused(words, message, tmp_path, capsys):
    folder = tmp_path / 'package'
    assert code_of('generate', ARM, '-o', str(folder), *words) == 1
    assert message in one_line(capsys)
    assert not folder.exists()


def test_a_robot_with_closed_loops_gets_a_function_that_closes_them(tmp_path, capsys):
    assert code_of('generate', str(ROOT / 'urdf/four_bar.urdf'), '-o', str(tmp_path / 'x')) == 0
    assert 'int four_bar_close_loops(double *q);' in (
        tmp_path / 'x/four_bar_dynamics.h').read_text()


def test_a_generated_controller_is_a_package_that_documents_its_origin(tmp_path, capsys):
    folder = tmp_path / 'arm'
    assert code_of('generate', ARM, '--controller', '-o', str(folder), '--link', 'tool') == 0
    assert 'demo_arm_dynamics.h, demo_arm_dynamics.c, robot.hpp' in capsys.readouterr().out
    files = {path.name: path.read_text() for path in folder.iterdir()}
    assert set(files) == {
        'demo_arm_dynamics.h', 'demo_arm_dynamics.c', 'robot.hpp', 'law.hpp', 'controller.cpp',
        'test_law.cpp', 'controller.xml', 'controllers.yaml', 'CMakeLists.txt', 'package.xml',
        'README.md'}
    assert all('SPDX-License-Identifier: 0BSD' in text for text in files.values())
    assert not any(re.search('@[a-zA-Z_]+@', text) for text in files.values())
    assert f'SHA-256 `{sha256(Path(ARM).read_bytes()).hexdigest()}`' in files['README.md']
    assert "centre in the frame of 'tool', m" in files['demo_arm_dynamics.h']
    # The plugin of the library, by the names that pluginlib looks for.
    library = ElementTree.fromstring(files['controller.xml'])
    assert library.attrib == {'path': 'demo_arm_controller'}
    assert library[0].attrib == {
        'name': 'demo_arm_controller/Controller', 'type': 'demo_arm_controller::Controller',
        'base_class_type': 'controller_interface::ChainableControllerInterface'}
    assert ElementTree.fromstring(files['package.xml']).find('name').text == 'demo_arm_controller'
    found = yaml.safe_load(files['controllers.yaml'])
    manager = found['/**/controller_manager']['ros__parameters']
    assert manager['demo_arm_controller'] == {'type': 'demo_arm_controller/Controller'}
    joints = ['shoulder_pan', 'shoulder_lift', 'upper_arm_roll', 'elbow', 'forearm_roll',
              'wrist_pitch', 'flange_roll']
    upper = found['/**/joint_trajectory_controller']['ros__parameters']
    assert upper['joints'] == joints
    assert upper['command_joints'] == [f'demo_arm_controller/{name}' for name in joints]


def test_parameters_of_the_readme_are_those_of_the_controller(tmp_path):
    assert code_of('generate', ARM, '--controller', '-o', str(tmp_path)) == 0
    readme, source, robot = ((tmp_path / name).read_text() for name in (
        'README.md', 'controller.cpp', 'robot.hpp'))
    listed = re.findall(r'^\| `([a-z_.]+)` \|', readme, re.MULTILINE)
    assert sorted(listed) == sorted(
        [*re.findall(r'^    \{"([a-z_.]+)"', robot, re.MULTILINE),
         *re.findall(r'get[<A-Za-z>]*\([^"]+, "([a-z_.]+)", ', source)])


@pytest.mark.parametrize('words, name', [
    (['-o', 'my_arm_controller'], 'my_arm'), (['-o', 'package'], 'demo_arm'),
    (['-o', 'my_arm_controller', '--prefix', 'left'], 'left')])
def test_a_folder_named_as_a_controller_names_the_package(words, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code_of('generate', ARM, '--controller', *words) == 0
    package = ElementTree.parse(tmp_path / words[1] / 'package.xml')
    assert package.find('name').text == f'{name}_controller'
    assert (tmp_path / words[1] / f'{name}_dynamics.c').is_file()


def test_the_program_of_the_page_compiled_as_printed_holds_the_arm(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / 'doc/how_to/generate.md').read_text(encoding='utf-8')
    program, = re.findall(r'^```c\n(.*?)^```$', page, re.MULTILINE | re.DOTALL)
    generate, command = re.findall(r'^(?:rbd_ros|gcc) .*$', page, re.MULTILINE)
    assert code_of(*generate.replace('urdf/demo_arm.urdf', ARM).split()[1:]) == 0
    (tmp_path / 'hold.c').write_text(program)
    subprocess.run(['gcc', '-fsyntax-only', '-Wall', '-Wextra', '-Werror', '-Ibuild/arm_dynamics',
                    'hold.c', 'build/arm_dynamics/arm_dynamics.c'], check=True)
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    errors = [float(x) for x in re.findall(r'joint \d: (.*) rad from its goal\n', done.stdout)]
    # Of e^-20 and the explicit steps something is left.
    assert len(errors) == 7 and 0.0 < max(map(abs, errors)) < 1e-6


def test_help_lists_all_functions(capsys):
    assert code_of('generate', '--help') == 0
    text = ' '.join(capsys.readouterr().out.split())
    assert f'functions: {", ".join(FUNCTIONS)} (default' in text


@pytest.mark.skipif(not shutil.which('cmake'), reason='needs cmake')
def test_cmake_builds_installs_and_finds_the_package(tmp_path):
    assert code_of('generate', ARM, '-o', str(tmp_path / 'arm'), '--prefix', 'arm', '--functions',
                   'gravity_torques') == 0
    (tmp_path / 'CMakeLists.txt').write_text(
        'cmake_minimum_required(VERSION 3.16)\nproject(user C)\n'
        'find_package(arm_dynamics REQUIRED)\nadd_executable(user user.c)\n'
        'target_link_libraries(user arm_dynamics::arm_dynamics)\n')
    (tmp_path / 'user.c').write_text(
        '#include <arm_dynamics.h>\nint main(void) { double q[ARM_NQ] = {0}, g[ARM_NV];\n'
        'arm_gravity_torques(q, g); return g[0] != 0.0; }\n')
    prefix = f'-DCMAKE_PREFIX_PATH={tmp_path / "prefix"}'
    # Without ROS: CMake finds no ament.
    alone = '-DCMAKE_DISABLE_FIND_PACKAGE_ament_cmake=ON'
    for words in (['cmake', '-S', 'arm', '-B', 'a', alone, '--install-prefix',
                   str(tmp_path / 'prefix')],
                  ['cmake', '--build', 'a', '--target', 'install'],
                  ['ctest', '--test-dir', 'a', '--output-on-failure'],
                  ['cmake', '-S', '.', '-B', 'b', prefix], ['cmake', '--build', 'b'], ['b/user']):
        subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
