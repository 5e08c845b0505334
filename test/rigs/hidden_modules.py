# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Processes in which some modules cannot be imported, as if they were not installed."""

import os

MISSING = "raise ModuleNotFoundError(f'No module named {__name__!r}', name=__name__)\n"


def environment(folder, *names):
    """Return the environment of processes without some modules; writes to the folder."""
    for name in names:
        (folder / f'{name}.py').write_text(MISSING)
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get('PYTHONPATH')]))
    return {**os.environ, 'PYTHONPATH': path, 'PYTHONDONTWRITEBYTECODE': '1'}
