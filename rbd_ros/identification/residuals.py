# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One table of the residuals of many robots and recordings, to query."""

from __future__ import annotations

from collections.abc import Sequence
import os

import numpy as np
from rbd_ros.identification.report import Comparison
from rbd_ros.recordings.tables import import_pyarrow


def write_residuals(path: str | os.PathLike[str], robot: str, joint_names: Sequence[str],
                    comparisons: Sequence[Comparison]) -> None:
    """
    Write measured and computed efforts as Parquet, one row for each joint of each sample.

    The columns are ``robot recording joint time velocity measured urdf fit usable``; tables of
    several robots can be read together, as any program that knows Parquet does.

    Parameters
    ----------
    path : path-like
        Of the table.
    robot : str
        Its name.
    joint_names : sequence of str
        Of the columns of the efforts.
    comparisons : sequence of Comparison
        One for each recording.

    Raises
    ------
    RecordingError
        If pyarrow is not installed.

    """
    pyarrow, parquet = import_pyarrow(path)
    texts = ('robot', 'recording', 'joint')
    numbers = ('time', 'velocity', 'measured', 'urdf', 'fit')
    schema = pyarrow.schema([(name, pyarrow.string()) for name in texts]
                            + [(name, pyarrow.float64()) for name in numbers]
                            + [('usable', pyarrow.bool_())])
    with parquet.ParquetWriter(path, schema) as writer:
        for one in comparisons:
            for k, joint in enumerate(joint_names):
                columns = [one.time, *(getattr(one, name)[:, k] for name in numbers[1:])]
                writer.write_table(pyarrow.table(
                    [pyarrow.array(np.full(len(one.time), text))
                     for text in (robot, one.name, joint)]
                    + [pyarrow.array(np.ascontiguousarray(x)) for x in columns]
                    + [pyarrow.array(one.usable[:, k])], schema=schema))
