# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Package metadata is correct: dependencies, versions, targets, licences."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path
import re
import runpy
import subprocess
import sys
from xml.etree import ElementTree

import hidden_modules
import pytest
import rbd_ros
from rbd_ros.ros.launch import launch_plan
import yaml

ROOT = Path(__file__).parents[2]
PACKAGES = {name: ElementTree.parse(ROOT / name / 'package.xml').getroot()
            for name in ('.', 'rbd_msgs')}
# Names of modules in rosdep and PyPI, if they differ from Python's. None: unknown there.
ROSDEP = {'lxml': 'python3-lxml', 'matplotlib': 'python3-matplotlib',
          'numpy': 'python3-numpy', 'scipy': 'python3-scipy', 'rich': None,
          'urdf_parser_py': 'urdfdom_py',
          # Not in every apt; without it the library is slow.
          'numba': None, 'llvmlite': None,
          'hypothesis': 'python3-hypothesis', 'psutil': 'python3-psutil',
          'pytest': 'python3-pytest', 'sympy': 'python3-sympy', 'yaml': 'python3-yaml',
          'catkin_pkg': 'python3-catkin-pkg',
          # Robots, and the program to compare with: `make test` brings them from PyPI.
          'pinocchio': None,
          # For optimal control and time-optimal motions, from PyPI.
          'casadi': None, 'toppra': None,
          # Extras that read recordings, from PyPI.
          'rosbags': None, 'pyarrow': None, 'distributed': None,
          # Pages, and tests of them in a browser, from PyPI.
          'viser': None, 'trimesh': None, 'selenium': None, 'msgspec': None, 'zstandard': None,
          'PIL': None, 'websockets': None,
          # Programs that the benchmark compares with.
          'mujoco': None, 'pydrake': None, 'frax': None, 'jax': None, 'torch': None}
# None: used only if it is installed.
PYPI = {'yaml': 'pyyaml', 'urdf_parser_py': 'urdfdom_py', 'catkin_pkg': 'catkin-pkg',
        'pinocchio': 'pin', 'pydrake': None,
        'frax': None, 'jax': None,
        'PIL': 'pillow', 'mujoco': 'mujoco-core'}


@cache
def imported(path):
    """Return the top-level modules that a file imports, anywhere in it."""
    found, blocks = set(), [ast.parse(path.read_text(encoding='utf-8'))]
    for block in blocks:
        for node in ast.iter_child_nodes(block):
            if isinstance(node, ast.Import):
                found |= {alias.name.split('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(node.module.split('.')[0])
            elif hasattr(node, 'body') and not isinstance(node, ast.expr):
                blocks.append(node)
    return found


def imports(*folders, without=()):
    """Return the external top-level modules that files below folders import."""
    found, own = set(), {'rbd_ros', *(path.stem for path in (ROOT / 'benchmark').glob('*.py'))}
    for folder in folders:
        for path in (ROOT / folder).rglob('*.py'):
            own.add(path.stem)
            if path.name not in without:
                found |= imported(path)
    return found - own - set(sys.stdlib_module_names)


def is_of_ros(module):
    """Return whether a module comes with ROS, under the name of its package."""
    return module not in {**ROSDEP, **PYPI}


def extras():
    """Return the requirements of setup.py by extra; None: those of the package."""
    call = next(node for node in ast.walk(ast.parse((ROOT / 'setup.py').read_text()))
                if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'setup')
    given = {one.arg: one.value for one in call.keywords}
    return {None: ast.literal_eval(given['install_requires']),
            **ast.literal_eval(given['extras_require'])}


def required(*names):
    """Return the requirements of extras, without versions."""
    return {re.split('[<>=;\\[]', one)[0].strip() for name in names for one in extras()[name]}


@pytest.mark.parametrize('folders, tags', [
    (('rbd_ros', 'launch'), ('exec_depend', 'depend')),
    (('rbd_ros', 'launch', 'test', 'tools', 'examples', 'doc', 'benchmark'),
     ('exec_depend', 'depend', 'test_depend'))])
def test_package_xml_names_every_import(folders, tags):
    named = {one.text for tag in tags for one in PACKAGES['.'].findall(tag)}
    wanted = {ROSDEP.get(module, module) for module in imports(*folders)}
    # launch files are tested with actions that only record.
    assert wanted - named - {None} == set()


@pytest.mark.parametrize('folders, names', [
    (('rbd_ros',), (None, 'demo', 'xacro', 'recordings', 'fleet', 'mujoco', 'view', 'casadi',
                    'sympy', 'jax', 'torch', 'retime')),
    (('rbd_ros', 'test', 'tools', 'examples'), (None, 'demo', 'test', 'frameworks')),
    (('rbd_ros', 'doc'), (None, 'demo', 'xacro', 'recordings', 'fleet', 'mujoco', 'view', 'casadi',
                          'sympy', 'jax', 'torch', 'retime', 'docs')),
    (('benchmark',), (None, 'bench'))])
def test_setup_names_every_import_that_ros_does_not_bring(folders, names):
    # test/soak.py belongs to the benchmark: `make soak` brings what that needs.
    wanted = {PYPI.get(module, module) for module in imports(*folders, without=('soak.py',))
              if not is_of_ros(module)}
    assert wanted - {None} <= required(*names)


def test_package_xml_names_every_program_that_is_started_and_every_extension_of_the_site():
    named = {one.text for one in PACKAGES['.'].findall('exec_depend')}
    assert set(launch_plan.PACKAGES) <= named
    assert {'ros2launch'} <= named
    conf = (ROOT / 'doc/conf.py').read_text(encoding='utf-8')
    extensions = ast.literal_eval(re.search(r'^extensions = (\[.*?\])', conf,
                                            re.MULTILINE | re.DOTALL)[1])
    assert {one.partition('.')[0].replace('_', '-') for one in extensions} <= required('docs')
    # Others are removed on docs.ros.org.
    assert all(one == 'myst_parser' or one.startswith('sphinx.ext.') for one in extensions)


def test_docs_ros_org_builds_the_folder_of_the_documentation():
    name = PACKAGES['.'].findtext('export/rosdoc2')
    _, settings = yaml.safe_load_all((ROOT / name).read_text(encoding='utf-8'))
    (builder,) = settings['builders']
    assert (ROOT / builder['sphinx']['sphinx_sourcedir'] / 'conf.py').is_file()
    assert settings['settings'] == {'never_run_doxygen': True, 'never_run_sphinx_apidoc': True}


def test_the_environment_of_pixi_contains_the_dependencies_of_both_packages():
    tomllib = pytest.importorskip('tomllib')       # from Python 3.11 on
    given = tomllib.loads((ROOT / 'pixi.toml').read_text(encoding='utf-8'))
    there = {*given['dependencies'], *given['pypi-dependencies']}
    assert {f'ros-kilted-{name.replace("_", "-")}' for name in (
        *launch_plan.PACKAGES, 'xacro', 'domain_coordinator', 'rosidl_default_generators',
        'ros_base')} <= there
    assert required(None) - {'llvmlite'} <= there
    assert {'mujoco-python', 'matplotlib-base', 'rich'} <= there       # of the demo
    # A distribution that is run here.
    assert given['workspace']['channels'][0] == 'robostack-kilted'
    assert (ROOT / 'requirements-ros-kilted.txt').exists()


def test_examples_need_only_packages_that_make_setup_installs():
    # Examples that need other packages report this: test/library/test_examples.py.
    wanted = {PYPI.get(module, module) for module in imports('examples') if not is_of_ros(module)}
    assert wanted - {None, 'sympy', 'casadi', 'torch', 'jax'} <= required(None, 'demo')


def test_pages_install_extras_from_the_folder_of_the_repository_and_quote_them():
    named = set()
    for path in (ROOT / 'README.md', ROOT / 'CONTRIBUTING.md', *(ROOT / 'doc').rglob('*.md')):
        text = path.read_text(encoding='utf-8')
        assert not re.search(r'pip install [^`\n]*rbd_ros\[', text), path
        named |= {name for line in re.findall(r'pip install .*\[.*', text)
                  for name in re.findall(r'"\.\[(\w+)\]"', line) or ['not quoted']}
    assert {'view', 'recordings', 'xacro'} <= named <= extras().keys()


def test_messages_name_extras_as_the_shell_takes_them():
    # pip reads the requirements from the installed package, from whatever source.
    named = set()
    for path in (ROOT / 'rbd_ros').rglob('*.py'):
        text = re.sub(r"'\s*\n\s*f?'", '', path.read_text(encoding='utf-8'))
        for before, name, after in re.findall(r'(.)rbd_ros\[([a-z]+)\](.)', text):
            assert before == after and before in '"\'', path
            named.add(name)
    assert {'view', 'recordings', 'mujoco', 'fleet'} <= named <= extras().keys()


def test_the_oldest_packages_are_those_that_are_tried():
    matrix = runpy.run_path(str(ROOT / 'tools/matrix.py'))
    bounds = dict(one.split('>=') for one in extras()[None] if '>=' in one)
    first, last = min(matrix['OLDEST']), max(matrix['OLDEST'])
    assert bounds == dict(zip(matrix['PACKAGES'], matrix['OLDEST'][first]))
    assert f"python_requires='>=3.{first}'" in (ROOT / 'setup.py').read_text()
    steps = yaml.safe_load((ROOT / '.github/workflows/ci.yml').read_text())['jobs']['matrix']
    brought = next(step['with'] for step in steps['steps'] if 'with' in step)['python-version']
    assert brought.split() == [f'3.{first}', f'3.{last}']


def test_messages_are_built_with_the_ros_that_they_run_with():
    builds = dict(zip(('kilted', 'jazzy'), (ROOT / 'rbd_msgs/pyproject.toml').read_text().split(
        '[[tool.scikit-build.overrides]]\nif.env.ROS_DISTRO = "^jazzy$"\n')))
    files = sorted(ROOT.glob('requirements-ros-*.txt'))
    assert [f'requirements-ros-{name}.txt' for name in sorted(builds)] == [x.name for x in files]
    for distribution, text in builds.items():
        lines = (ROOT / f'requirements-ros-{distribution}.txt').read_text().splitlines()
        run = dict(line.split('==') for line in lines if not line.startswith('#'))
        build = dict(re.findall('"(ros-.*)==(.*)"', text))
        assert f'ros-{distribution}-rclpy[fastrtps]' in run
        common = run.keys() & build.keys()
        assert {one.text for one in PACKAGES['rbd_msgs'].findall('depend')} <= {
            name.removeprefix('ros-').replace('-', '_') for name in common}
        assert {name: run[name] for name in common} == {name: build[name] for name in common}


def test_there_is_one_version():
    version = PACKAGES['.'].findtext('version')
    assert PACKAGES['rbd_msgs'].findtext('version') == version
    assert f'version = "{version}"' in (ROOT / 'rbd_msgs/pyproject.toml').read_text()
    assert rbd_ros.__version__ == version
    citation = yaml.safe_load((ROOT / 'CITATION.cff').read_text())
    assert citation['version'] == version
    for folder in PACKAGES:
        text = (ROOT / folder / 'CHANGELOG.rst').read_text(encoding='utf-8')
        assert f'\n{version} ({citation["date-released"]:%Y-%m-%d})\n' in text


def test_one_licence_everywhere():
    licence = yaml.safe_load((ROOT / 'CITATION.cff').read_text())['license']
    for package in PACKAGES.values():
        assert package.findtext('license') == licence
    files = subprocess.run(
        ['git', 'ls-files', '--cached', '--others', '--exclude-standard', '*.py'], cwd=ROOT,
        check=True, capture_output=True, text=True).stdout.splitlines()
    assert len(files) > 300
    for path in filter(Path.is_file, map(ROOT.joinpath, files)):
        lines = path.read_text(encoding='utf-8').splitlines()
        assert not lines or f'SPDX-License-Identifier: {licence}' in lines[1], path


def test_make_help_lists_every_target():
    text = (ROOT / 'Makefile').read_text()
    phony = set(' '.join(re.findall(r'^\.PHONY: (.*)$', text, re.MULTILINE)).split())
    shown = subprocess.run(['make', '--no-print-directory', 'help'], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout
    assert set(re.findall(r'^  make ([a-z-]+) +\S', shown, re.MULTILINE)) == phony


def test_the_benchmark_explains_itself_and_names_its_parts():
    def printed(argument):
        found = subprocess.run([sys.executable, ROOT / 'benchmark/run.py', argument],
                               capture_output=True, text=True)
        return found.returncode, found.stdout + found.stderr

    code, text = printed('--help')
    assert code == 0 and 'in two minutes' in text
    code, text = printed('nothing')
    assert code == 2 and "there is no part 'nothing', only library, " in text
    assert '[]' not in text


def test_continuous_integration_and_hooks_call_existing_targets_and_programs():
    workflow = yaml.safe_load((ROOT / '.github/workflows/ci.yml').read_text())
    steps = [step.get('run', '') for step in workflow['jobs']['ci']['steps']]
    assert '.ci/run' in steps
    targets = set(re.findall(r'\bmake ([a-z-]+)', (ROOT / '.ci/run').read_text()))
    assert {'test', 'lint', 'docs'} <= targets
    assert targets <= set(re.findall(r'^([a-z-]+):', (ROOT / 'Makefile').read_text(),
                                     re.MULTILINE))
    hooks = yaml.safe_load((ROOT / '.pre-commit-config.yaml').read_text())['repos'][0]['hooks']
    assert all(hook['entry'].startswith('.venv/bin/') for hook in hooks)


@pytest.mark.parametrize('root', ['rbd_ros', 'test'])
def test_no_folder_has_more_than_16_files_side_by_side(root):
    folders = Counter(path.parent for path in (ROOT / root).rglob('*.py'))
    assert len(folders) > 25 and max(folders.values()) <= 16, folders.most_common(1)


# -- Optional packages of tests: a test without one skips by its name, others of its file run. ---

OPTIONAL = ('casadi', 'collada', 'distributed', 'jax', 'matplotlib', 'msgspec', 'mujoco', 'PIL',
            'psutil', 'pyarrow', 'rich', 'rosbags', 'selenium', 'sympy', 'toppra', 'torch',
            'trimesh', 'viser', 'websockets', 'xacro', 'zstandard')
# Files of tests that import one of them, or a module beside them that does
NAMED = re.compile(rf"(import |from |Optional\('|skip\(')({'|'.join(OPTIONAL)}|bag_files|browser|"
                   r'forged_pages|mjcf_oracle)\b')


def test_without_optional_packages_tests_skip_by_their_name_and_others_of_the_file_run(tmp_path):
    files = [str(path) for path in (ROOT / 'test').rglob('test_*.py')
             if NAMED.search(path.read_text(encoding='utf-8'))]
    assert len(files) > 20
    found = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-rs', '-p', 'no:cacheprovider', *files, '-k',
         'test_tables and (hold_blanks or needs_no_pyarrow)'],
        env=hidden_modules.environment(tmp_path, *OPTIONAL), capture_output=True, text=True,
        cwd=ROOT / 'test').stdout
    # No file fails to be collected.
    assert 'ModuleNotFoundError' not in found, found
    assert "could not import 'pyarrow" in found, found
    assert re.search(r'^1 passed, \d+ skipped, \d+ deselected', found, re.MULTILINE), found
