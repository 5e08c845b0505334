# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables: what is written is read, bit by bit; what is wrong is named; nothing is left half."""

import os
import subprocess
import sys

from hypothesis import given, settings, strategies as st
import numpy as np
from optional import Optional
import pytest
from rbd_ros import RbdError, RecordingError
from rbd_ros.identification import read_recording, Recording, write_recording, write_table
from rbd_ros.recordings import tables

pyarrow = Optional('pyarrow')
parquet = Optional('pyarrow.parquet')

SUFFIXES = ('.csv', '.parquet')
FINITE = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def recordings(draw):
    """Return recordings with any numbers, and names that make trouble in tables."""
    names = draw(st.lists(st.text(st.characters(exclude_categories=('Cs', 'Cc')), min_size=1)
                          .filter(lambda name: name == name.strip())
                          | st.sampled_from(['a,b', '"', 'a/position', 'time', 'Größe']),
                          min_size=1, max_size=4, unique=True))
    count = draw(st.integers(1, 5))
    time = np.array(sorted(draw(st.lists(FINITE, min_size=count, max_size=count, unique=True))))
    # 0.0 and -0.0 are the same time.
    time = np.unique(time)

    def numbers():
        return np.array(draw(st.lists(FINITE, min_size=len(time) * len(names),
                                      max_size=len(time) * len(names)))
                        ).reshape(len(time), len(names))

    velocity, effort = (draw(st.booleans()) and numbers() for _ in range(2))
    if effort is not False and len(names) > 1:
        effort[:, draw(st.integers(0, len(names) - 1))] = np.nan
    return Recording('here', names, time, numbers(), None if velocity is False else velocity,
                     None if effort is False else effort)


@pytest.mark.parametrize('suffix', SUFFIXES)
@settings(max_examples=25, deadline=None)
@given(one=recordings())
def test_a_written_table_is_read_back(tmp_path_factory, suffix, one):
    path = tmp_path_factory.mktemp('tables') / f'recording{suffix}'
    write_recording(path, one)
    got = read_recording(path)
    assert got.joint_names == one.joint_names
    for label in ('time', 'position', 'velocity', 'effort'):
        expected = getattr(one, label)
        if expected is not None and np.all(np.isnan(expected)):
            expected = None
        if expected is None:
            assert getattr(got, label) is None, label
        else:
            assert getattr(got, label).tobytes() == expected.tobytes(), label


def table(tmp_path, text, name='table.csv'):
    """Write a text and return its path."""
    path = tmp_path / name
    path.write_text(text, encoding='utf-8')
    return path


def test_spreadsheets_are_read(tmp_path):
    got = read_recording(table(
        tmp_path, '\ufefftime, j/position ,"j/effort"\r\n0,1.5,\r\n 0.1 ,2,3e0\r\n\r\n'))
    assert got.joint_names == ('j',)
    # The first row has no effort, and is left out; it does not shift the next.
    assert np.array_equal(got.time, [0.1]) and np.array_equal(got.effort, [[3.0]])
    assert got.position[0, 0] == 2.0
    assert got.notes == ('1 states left out that are incomplete or not finite',)


def test_other_columns_are_left_out_and_named(tmp_path):
    path = table(tmp_path, 'time,j/position,j/model_effort,x\n0,1,2,3\n')
    got = read_recording(path)
    assert got.velocity is None and got.effort is None
    assert got.notes == ('columns left out: j/model_effort, x',)


@pytest.mark.parametrize('text, said', [
    ('', 'the file is empty'),
    ('time,j/position\n', 'has no rows'),
    ('t,j/position\n0,1\n', "no column 'time', s; there are t, j/position"),
    ('time,j\n0,1\n', "no column '<joint>/position'; there are time, j"),
    ('time,a/position,b/effort\n0,1,2\n', "a column 'b/effort', but no 'b/position'"),
    ('time,j/position,time\n0,1,2\n', "the column 'time' is there twice"),
    ('time,j/position\n0,1\n1,one\n', "line 3, column 'j/position' must be a number, got 'one'"),
    ('time,j/position\n0,1\n1\n', 'line 3 has 1 cells, and the first line 2 names; is the file'),
    ('time,j/position\n0,nan\n', 'no state is complete: 1 states left out'),
])
def test_errors_of_tables_name_the_file_and_the_cause(tmp_path, text, said):
    with pytest.raises(RecordingError) as error:
        read_recording(table(tmp_path, text))
    assert said in str(error.value) and str(tmp_path / 'table.csv') in str(error.value)


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_bytes_that_are_no_table_are_refused(tmp_path, suffix):
    path = tmp_path / f'table{suffix}'
    path.write_bytes(b'\xff\xfe\x00\x81' * 50)
    with pytest.raises(RecordingError, match='the file is not'):
        read_recording(path)


def test_a_parquet_may_hold_blanks_but_no_texts_and_is_refused_if_cut_off(tmp_path):
    path = tmp_path / 'table.parquet'
    parquet.write_table(pyarrow.table(
        {'time': [0, 1, 2], 'j/position': pyarrow.array([1.0, None, 3.0], pyarrow.float32())}),
        path)
    assert np.array_equal(read_recording(path).position, [[1.0], [3.0]])
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(RecordingError, match='not Parquet, or is damaged'):
        read_recording(path)
    parquet.write_table(pyarrow.table({'time': [0, 1], 'j/position': ['a', 'b']}), path)
    with pytest.raises(RecordingError, match="column 'j/position' must hold numbers, got string"):
        read_recording(path)


def test_a_table_has_no_topics(tmp_path):
    with pytest.raises(RecordingError, match='a table has no topics'):
        read_recording(table(tmp_path, 'time,j/position\n0,1\n'), topic='/joint_states')


# -- Writing. ------------------------------------------------------------------------------------

@pytest.mark.parametrize('suffix', SUFFIXES)
def test_columns_are_concatenated(tmp_path, suffix):
    path = tmp_path / f'table{suffix}'
    names = ['time', 'a/position', 'b/position', 'a/effort']
    write_table(path, names, [0.0, 1.0], np.array([[1.0, 2.0], [3.0, 4.0]]), [np.nan, 6.0])
    got, data = tables.read_table(path)
    assert got == names
    assert np.array_equal(data, [[0.0, 1.0, 2.0, np.nan], [1.0, 3.0, 4.0, 6.0]], equal_nan=True)


@pytest.mark.parametrize('names, columns', [
    (['a'], [[0.0], [1.0]]), (['a', 'a'], [[0.0], [1.0]]), (['a', 'b'], [[0.0], [1.0, 2.0]]),
    (['a'], [['x']]), (['a'], [np.zeros((1, 1, 1))]),
])
def test_columns_that_do_not_fit_are_refused(tmp_path, names, columns):
    with pytest.raises(RecordingError, match=r'table\.csv: '):
        write_table(tmp_path / 'table.csv', names, *columns)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_failed_write_keeps_the_previous_file(tmp_path, suffix, monkeypatch):
    path = tmp_path / f'table{suffix}'
    write_table(path, ['time'], [1.0])
    before = path.read_bytes()

    def fail(file, *rest):
        with open(file, 'w', encoding='utf-8') as out:
            out.write('half')
        raise KeyboardInterrupt

    monkeypatch.setattr(tables, f'_write_{suffix[1:]}', fail)
    with pytest.raises(KeyboardInterrupt):
        write_table(path, ['time'], [2.0])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_invalid_paths_of_tables_are_refused_by_name(tmp_path):
    write_table(tmp_path / 'new' / 'table.csv', ['time'], [1.0])
    path = tmp_path / 'new' / 'table.csv' / 'in_a_file.csv'
    with pytest.raises(RbdError, match=r'table\.csv is not a directory'):
        write_table(path, ['time'], [1.0])
    (tmp_path / 'folder.csv').mkdir()
    with pytest.raises(RbdError, match=r'folder\.csv is not a file'):
        write_table(tmp_path / 'folder.csv', ['time'], [1.0])
    with pytest.raises(RecordingError, match=r'tables end in \.csv or \.parquet'):
        write_table(tmp_path / 'table.txt', ['time'], [1.0])


def test_permissions_of_tables_follow_the_umask(tmp_path):
    mask = os.umask(0o027)
    try:
        write_table(tmp_path / 'table.csv', ['time'], [1.0])
    finally:
        os.umask(mask)
    assert (tmp_path / 'table.csv').stat().st_mode & 0o777 == 0o640


def test_csv_needs_no_pyarrow_and_parquet_names_the_extra(tmp_path):
    program = ('import sys; sys.modules["pyarrow"] = None\n'
               'from rbd_ros.identification import write_table, read_recording\n'
               'import rbd_ros\n'
               f'write_table({str(tmp_path / "t.csv")!r}, ["time", "j/position"], [0.0], [1.0])\n'
               f'assert len(read_recording({str(tmp_path / "t.csv")!r})) == 1\n'
               f'try:\n    write_table({str(tmp_path / "t.parquet")!r}, ["time"], [0.0])\n'
               'except rbd_ros.RecordingError as error:\n    print(error)')
    done = subprocess.run([sys.executable, '-c', program], check=True, capture_output=True,
                          text=True)
    assert "pip install 'rbd_ros[recordings]'" in done.stdout


# With as many columns as this, anything quadratic takes a minute.
WIDE = 30_000


def test_a_table_of_30000_columns_is_read(tmp_path):
    names = ['time', *(f'j{k}/position' for k in range(WIDE)), 'j7/velocity', 'j7/effort']
    path = tmp_path / 'wide.csv'
    path.write_text('\n'.join([','.join(names), *(
        ','.join([str(t)] * len(names)) for t in range(2))]))
    recording = read_recording(path)
    assert len(recording.joint_names) == WIDE and recording.position[1, -1] == 1.0
    path.write_text(path.read_text().replace('j29999/', 'j5/', 1))
    with pytest.raises(RecordingError, match="column 'j5/position' is there twice"):
        read_recording(path)
