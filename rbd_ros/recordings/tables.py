# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read and write tables, as CSV or Parquet (needs pyarrow); RbdError if that is impossible."""

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
ROWS_PER_WRITE = 10_000


def read_table(path: Path) -> tuple[list[str], np.ndarray]:
    """Return names and values (rows, columns) of a CSV or Parquet table; empty cells are NaN."""
    names, data = (_read_csv if _suffix(path) == '.csv' else _read_parquet)(path)
    if (twice := first_twice(names)) is not None:
        raise RecordingError(f"{path}: the column '{printable(twice)}' is there twice")
    if not len(data):
        raise RecordingError(f'{path}: the table has no rows')
    return names, data


def write_table(path: str | os.PathLike[str], names: Sequence[str], *columns: np.ndarray) -> None:
    """
    Write a table of numbers, completely or not at all; they are read back exactly.

    Parameters
    ----------
    path : path-like
        ``.csv``, or ``.parquet`` (needs pyarrow). An existing file is replaced, missing folders
        are created.
    names, *columns : sequence of str, array_like of shape (rows,) or (rows, k)
        Names of all columns, and values, concatenated horizontally.

    """
    path = Path(path)
    write = _write_csv if _suffix(path) == '.csv' else _write_parquet
    data = _stacked(path, columns)
    if len(set(names)) != len(names) or data.shape[1] != len(names):
        raise RecordingError(f'{path}: {data.shape[1]} columns need as many distinct names; '
                             f'got {listed(names)}')
    try:
        with whole_files(path) as (draft,):
            write(draft, list(names), data)
    except OSError as error:
        raise RecordingError(f'{path}: the table cannot be written: {error}') from error


def _suffix(path: Path) -> str:
    if path.suffix not in SUFFIXES:
        raise RecordingError(f'{path}: tables end in .csv or .parquet, bags in .mcap or .db3')
    return path.suffix


def _stacked(path: Path, columns: Sequence[np.ndarray]) -> np.ndarray:
    arrays = []
    for given in columns:
        one = real_array(given)
        if one is None or one.ndim not in (1, 2) or len(one) != len(columns[0]):
            raise RecordingError(f'{path}: columns must be real numbers of equal length, got '
                                 + shown(given))
        arrays.append(one if one.ndim == 2 else one[:, None])
    return np.hstack(arrays) if arrays else np.zeros((0, 0))


def _read_csv(path: Path) -> tuple[list[str], np.ndarray]:
    numbers = array('d')
    try:
        with open(path, newline='', encoding='utf-8-sig') as file:
            first = file.readline()
            file.seek(0)
            # Spreadsheets with decimal commas separate cells by semicolons.
            delimiter = max(',;\t', key=first.count)
            reader = csv.reader(file, delimiter=delimiter)
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
                if delimiter != ',':
                    row = [cell.replace(',', '.') for cell in row]
                try:
                    numbers.extend(map(float, row))
                except ValueError:
                    # Remove the cells of this row that were added before the error.
                    del numbers[len(numbers) - len(numbers) % len(names):]
                    numbers.extend(_cell(path, reader.line_num, *pair) for pair in zip(names, row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecordingError(f'{path}: the file is not a text table: {error}') from error
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
        for start in range(0, len(data), ROWS_PER_WRITE):
            writer.writerows(data[start:start + ROWS_PER_WRITE].tolist())


def import_pyarrow(path: str | os.PathLike[str]) -> tuple[ModuleType, ModuleType]:
    """Return the modules pyarrow and pyarrow.parquet, or raise an error that names the file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RecordingError(f'{path}: Parquet needs pyarrow, which is not installed: pip install '
                             "'rbd_ros[recordings]', or use .csv") from None
    return pyarrow, pyarrow.parquet


def _read_parquet(path: Path) -> tuple[list[str], np.ndarray]:
    pyarrow, parquet = import_pyarrow(path)
    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise RecordingError(f'{path}: the file is not Parquet, or is damaged: '
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
