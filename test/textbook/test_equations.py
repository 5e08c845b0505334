# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of doc/equations.md have every equation, and name existing functions and tests."""

import csv
import importlib
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc' / 'equations.md'
TEXT = PAGE.read_text(encoding='utf-8').partition('## Errata')[0]
FILES = [PAGE.parent / file for file in re.findall('^:file: (.*)$', TEXT, re.MULTILINE)]
TABLES = ''.join(file.read_text(encoding='utf-8') for file in FILES)


def rows(letter):
    """Return the cells of the rows of a document."""
    return [cells for cells in csv.reader(TABLES.splitlines())
            if cells[0].startswith(f'{letter} ')]


def numbers(cell):
    """Return the equation numbers of a cell, ranges written out."""
    found = set()
    for first, last in re.findall(r'\(([\d.]+)[a-d]?\)(?:-\(([\d.]+)\))?', cell):
        *chapter, low = first.split('.')
        high = last.split('.')[-1] if last else low
        found |= {'.'.join([*chapter, str(k)]) for k in range(int(low), int(high) + 1)}
    return found


@pytest.mark.parametrize('letter, expected', [
    ('V', [f'1.{k}' for k in range(1, 18)] + [f'2.{k}' for k in range(1, 25)]),
    ('L', [f'9.{k}' for k in range(1, 100)]),
    ('K', [str(k) for k in range(1, 65)]),
    ('G', [str(k) for k in range(1, 34)]),
])
def test_every_equation_has_its_row(letter, expected):
    found = [number for cells in rows(letter) for number in numbers(cells[0])]
    assert sorted(set(expected) - set(found)) == []
    assert sorted(set(found) - set(expected)) == []


def test_every_table_and_section_has_its_row():
    tables = {cells[0] for cells in rows('K')}
    assert {f'K Table {k}' for k in range(1, 8)} <= tables
    sections = ' '.join(cells[0] for cells in rows('B'))
    for section in (*range(4, 12), 'Appendix'):
        assert re.search(rf'\b{section}\b', sections), section


def named(text):
    """Return the dotted names in backquotes."""
    return sorted(set(re.findall(r'`([a-z_0-9]+(?:\.\w+)+)`', text)))


@pytest.mark.parametrize('name', named(TEXT + TABLES))
def test_functions_and_tests_named_in_the_table_exist(name):
    file, *path = name.split('.')
    if file.startswith('test_'):
        path_of_test, = (ROOT / 'test').rglob(f'{file}.py')
        source = path_of_test.read_text(encoding='utf-8')
        assert f'\ndef {path[0]}(' in source
    elif file == 'two_link_arm':
        example, = (ROOT / 'examples').glob(f'[0-9][0-9]_{file}.py')
        source = example.read_text(encoding='utf-8')
        assert f'\ndef {path[0]}(' in source
    else:
        parts = name.split('.')
        depth = 2 if (ROOT / 'rbd_ros' / file).is_dir() else 1
        found = importlib.import_module('.'.join(['rbd_ros', *parts[:depth]]))
        for part in parts[depth:]:
            found = getattr(found, part)


def test_every_row_of_equations_names_a_function_and_a_test():
    for letter in 'VLKGB':
        for cells in rows(letter):
            assert len(cells) == 4, cells
            assert re.search(r'`\w+\.\w+', cells[2]), cells
            assert '`test_' in cells[3], cells
