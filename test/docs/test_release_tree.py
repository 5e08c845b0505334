# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`make release-tree` writes what the tools for ROS releases expect."""

from pathlib import Path
import re
import subprocess
import sys

from catkin_pkg.changelog import get_changelog_from_path
from catkin_pkg.packages import find_packages, verify_equal_package_versions
from catkin_pkg.topological_order import topological_order_packages
import pytest

ROOT = Path(__file__).parents[2]


def release_tree(folder):
    return subprocess.run(['make', '--no-print-directory', 'release-tree', f'OUT={folder}'],
                          cwd=ROOT, check=False, capture_output=True, text=True)


@pytest.fixture(scope='module')
def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp('release') / 'tree'
    result = release_tree(folder)
    assert result.returncode == 0, result.stderr
    return folder


def test_the_release_has_two_packages_side_by_side_and_no_warning(tree):
    warnings = []
    packages = find_packages(str(tree), warnings=warnings)
    assert set(packages) == {'rbd_ros', 'rbd_msgs'}
    assert warnings == []
    assert verify_equal_package_versions(packages.values())
    assert [path for path, _ in topological_order_packages(packages)] == ['rbd_msgs', 'rbd_ros']
    # find_packages does not look inside a package: none is there.
    assert len(list(tree.rglob('package.xml'))) == 2


def test_changelogs_and_licences_of_the_release_are_there(tree):
    for name, package in find_packages(str(tree)).items():
        changes = get_changelog_from_path(str(tree / name), name)
        assert package.version in [version for version, _, _ in changes.foreach_version()]
        assert changes.get_date_of_version(package.version)
        assert changes.get_content_of_version(package.version)
        assert (tree / name / 'LICENSE').read_text() == (ROOT / 'LICENSE').read_text()


def test_manifests_are_those_of_a_release(tree):
    # Fields that catkin_prepare_release, bloom and users of the package read.
    for name, package in find_packages(str(tree)).items():
        assert package.name == name == name.lower()
        assert set(package.get_unconditional_build_types()) <= {'ament_cmake', 'ament_python'}
        assert {url.type for url in package.urls} == {'website', 'repository', 'bugtracker'}
        assert all(url.url.startswith('https://') for url in package.urls)
        assert [person.email for person in package.maintainers]
        assert package.licenses == ['Apache-2.0'] and package.description
        assert not package.conflicts and not package.replaces


def test_placeholder_addresses_are_reported(tmp_path):
    said = release_tree(tmp_path / 'tree').stdout
    texts = [(ROOT / name).read_text() for name in ('package.xml', 'rbd_msgs/package.xml')]
    assert ('not known yet' in said) is any('example.org' in text for text in texts)


def test_a_link_puts_both_packages_side_by_side(tmp_path):
    # As doc/getting_started_ros.md lays out a workspace.
    page = (ROOT / 'doc/getting_started_ros.md').read_text()
    line, = re.findall(r'^ln -s (\S+) src/(\S+) ', page, re.MULTILINE)
    (tmp_path / 'rbd_ros').symlink_to(ROOT)
    assert set(find_packages(str(tmp_path))) == {'rbd_ros'}
    (tmp_path / line[1]).symlink_to(line[0])
    warnings = []
    assert set(find_packages(str(tmp_path), warnings=warnings)) == {'rbd_ros', 'rbd_msgs'}
    assert warnings == []


def test_the_release_contains_all_files_for_installation_and_tests(tree):
    kept = subprocess.run(['git', 'ls-tree', '-r', '--name-only', 'HEAD'], cwd=ROOT, check=True,
                          capture_output=True, text=True).stdout.split()
    for file in kept:
        inside = tree / file if file.startswith('rbd_msgs/') else tree / 'rbd_ros' / file
        left_out = re.match(r'\.|Makefile$|pixi\.toml$|docker/|requirements-ros|test/docs/', file)
        assert inside.is_file() is not bool(left_out), file


@pytest.mark.long
def test_tests_of_the_release_need_nothing_that_it_lacks(tree):
    result = subprocess.run([sys.executable, '-m', 'pytest', '--collect-only', '--quiet'],
                            cwd=tree / 'rbd_ros', check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-2000:]


def test_an_existing_folder_is_not_changed(tree, tmp_path):
    before = sorted(tree.rglob('*'))
    result = release_tree(tree)
    assert result.returncode and 'exists already' in result.stdout
    assert sorted(tree.rglob('*')) == before
    assert release_tree('').returncode
