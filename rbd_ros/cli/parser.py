# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parses the arguments of the command, and reports wrong ones."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from rbd_ros._internal.text import printable
from rbd_ros.errors import RbdError


class UsageError(RbdError, ValueError):
    """The command is used wrongly; the message names the option."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line and exit code 1, and that reads numbers like -1e-3."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        # argparse takes -1e-3 for an option, and has no public way to change that.
        self._negative_number_matcher = re.compile(r'^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$')

    def error(self, message: str) -> NoReturn:
        """End the program."""
        self.exit(1, f'{self.prog}: {printable(message)}; see {self.prog} --help\n')
