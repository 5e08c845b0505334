# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The optional package mujoco."""

from typing import Any

from rbd_ros.errors import ModelError

# MuJoCo's default log file, which it creates in the current directory.
DEFAULT_LOG = 'MUJOCO_LOG.TXT'


def import_mujoco(purpose: str) -> Any:
    """Return the module; if it is missing, raise ModelError with the package to install."""
    try:
        import mujoco
    except ImportError:
        raise ModelError(f'{purpose} needs the package mujoco-core, version 4.0.1 or newer: pip '
                         "install 'rbd_ros[mujoco]', on Python 3.11 or newer") from None
    # MuJoCo's warnings become exceptions here. A log file that the user has named is kept.
    log = mujoco.MjLogConfig.get()
    if log.logfile == DEFAULT_LOG:
        log.logto_file = False
        log.set()
    return mujoco
