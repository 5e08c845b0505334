# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The argument parser of the command line, and its error."""

import argparse
import re
import sys
from typing import Any, NoReturn

from rbd_ros._internal.text import printable
from rbd_ros.errors import RbdError

NEGATIVE = 2    # exit code of a command that ran, but whose result is negative


class UsageError(RbdError, ValueError):
    """Wrong usage of a command; the message names the option."""


def print_error(text: str, code: int = 1) -> int:
    """Print a text on one line of standard error, and return the exit code."""
    print(printable(text), file=sys.stderr)
    return code


class Parser(argparse.ArgumentParser):
    """A parser with one-line errors, exit code 1, and numbers like -1e-3 as arguments."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options,
                         formatter_class=argparse.RawDescriptionHelpFormatter)
        # argparse takes -1e-3 for an option; no public setting changes that.
        self._negative_number_matcher = re.compile(r'^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$')

    def error(self, message: str) -> NoReturn:
        """Print the error and exit with code 1."""
        self.exit(1, f'{self.prog}: {printable(message)}; see {self.prog} --help\n')
