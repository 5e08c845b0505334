# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of numbers with named columns: CSV, and Parquet where pyarrow is installed."""

from array import array
from collections.abc import Sequence
import csv
import os
from pathlib import Path
from types import ModuleType

import numpy as np
from rbd_ros._internal.atomic_write import whole_files
from rbd_ros._internal.text import first_twice, listed, printable
from rbd_ros.errors import RecordingError
from rbd_ros.model.arguments import real_array, shown

SUFFIXES = ('.csv', '.parquet')
# Number of rows that are written at a time.
BLOCK = 10_000


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """
    Return a table of numbers.

    Parameters
    ----------
    path : Path
        ``.csv`` with the names of the columns in its first line, or ``.parquet``.

    Returns
    -------
    list of str
        Names of the columns.
    ndarray, shape (rows, columns)
        NaN where a cell is empty.

    Raises
    ------
    RecordingError
        If it is not such a table; the message names the line and column.

    """
    names, data = (_read_csv if _suffix(path) == '.csv' else _read_parquet)(path)
    if (twice := first_twice(names)) is not None:
        raise RecordingError(f"{path}: the column '{printable(twice)}' is there twice")
    if not len(data):
        raise RecordingError(f'{path}: the table has no rows')
    return names, data


def write_table(path: str | os.PathLike[str], names: Sequence[str], *columns: np.ndarray) -> None:
    """
    Write a table of numbers, completely or not at all.

    Numbers are written so that they are read back exactly.

    Parameters
    ----------
    path : path-like
        ``.csv`` or ``.parquet``, which needs pyarrow. A file that is there is replaced, and a
        folder that is missing is created.
    names : sequence of str
        Names of all columns.
    *columns : array_like, shape (rows,) or (rows, some)
        The numbers; arrays of several columns are put side by side.

    Raises
    ------
    RecordingError
        If names and columns do not fit together, or the file cannot be written.
    RbdError
        If something that is not a file has this name.

    """
    path = Path(path)
    write = _write_csv if _suffix(path) == '.csv' else _write_parquet
    data = _beside(path, columns)
    if len(set(names)) != len(names) or data.shape[1] != len(names):
        raise RecordingError(f'{path}: {data.shape[1]} columns need as many names, all different; '
                             f'got {listed(names)}')
    try:
        with whole_files(path) as (draft,):
            write(draft, list(names), data)
    except OSError as error:
        raise RecordingError(f'{path}: the table cannot be written: {error}') from error


def _suffix(path: Path) -> str:
    """Return the kind of a table; raise if it is unknown."""
    if path.suffix not in SUFFIXES:
        raise RecordingError(f'{path}: tables end in .csv or .parquet, bags in .mcap or .db3')
    return path.suffix


def _beside(path: Path, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return arrays side by side."""
    arrays = []
    for given in columns:
        one = real_array(given)
        if one is None or one.ndim not in (1, 2) or len(one) != len(columns[0]):
            raise RecordingError(f'{path}: columns must be real numbers, as many in each, got '
                                 + shown(given))
        arrays.append(one if one.ndim == 2 else one[:, None])
    return np.hstack(arrays) if arrays else np.zeros((0, 0))


def _read_csv(path: Path) -> tuple[list[str], np.ndarray]:
    numbers = array('d')
    try:
        with open(path, newline='', encoding='utf-8-sig') as file:
            reader = csv.reader(file)
            names = [name.strip() for name in next(reader, [])]
            if not names:
                raise RecordingError(f'{path}: the file is empty')
            for row in reader:
                if len(row) != len(names):
                    if not row:
                        continue
                    raise RecordingError(
                        f'{path}: line {reader.line_num} has {len(row)} cells, and the first line '
                        f'{len(names)} names; is the file cut off?')
                try:
                    numbers.extend(map(float, row))
                except ValueError:
                    # Numbers of the row before the error were added already: remove them.
                    del numbers[len(numbers) - len(numbers) % len(names):]
                    numbers.extend(_cell(path, reader.line_num, *pair)
                                   for pair in zip(names, row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f'{path}: the file is no table of text: {error}') from error
    return names, np.frombuffer(numbers, float).reshape(-1, len(names))


def _cell(path: Path, line: int, name: str, text: str) -> float:
    """Return the number in a cell, NaN if it is empty."""
    try:
        return float(text) if text.strip() else np.nan
    except ValueError:
        raise RecordingError(f"{path}: line {line}, column '{printable(name)}' must be a number, "
                             f'got {shown(text)}') from None


def _write_csv(path: Path, names: list[str], data: np.ndarray) -> None:
    with open(path, 'w', newline='', encoding='utf-8') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow(names)
        for start in range(0, len(data), BLOCK):
            writer.writerows(data[start:start + BLOCK].tolist())


def import_pyarrow(path: str | os.PathLike[str]) -> tuple[ModuleType, ModuleType]:
    """Return pyarrow and its Parquet, or raise: the file at a path needs them."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RecordingError(f'{path}: Parquet needs pyarrow, which is not installed: pip install '
                             "'rbd_ros[recordings]', or take .csv") from None
    return pyarrow, pyarrow.parquet


def _read_parquet(path: Path) -> tuple[list[str], np.ndarray]:
    pyarrow, parquet = import_pyarrow(path)
    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise RecordingError(f'{path}: the file is no Parquet, or is damaged: '
                             + printable(str(error), 200)) from error
    columns = []
    for name, column in zip(table.column_names, table.columns):
        if not (pyarrow.types.is_integer(column.type) or pyarrow.types.is_floating(column.type)):
            raise RecordingError(f"{path}: column '{printable(name)}' must hold numbers, got "
                                 f'{column.type}')
        columns.append(column.to_numpy().astype(float))
    return list(table.column_names), (np.stack(columns, axis=1) if columns else np.zeros((0, 0)))


def _write_parquet(path: Path, names: list[str], data: np.ndarray) -> None:
    pyarrow, parquet = import_pyarrow(path)
    parquet.write_table(pyarrow.table(list(data.T.copy()), names=names), path)
