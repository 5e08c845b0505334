# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of this package. Every message names the cause and a remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike


class RbdError(Exception):
    """Base of all errors that rbd_ros raises on purpose."""


class ModelError(RbdError, ValueError):
    """A robot description is invalid; the message names the link or joint."""


class UrdfError(ModelError):
    """A text is not a valid URDF; the message names the element."""


class StateError(RbdError, ValueError):
    """A configuration, velocity, torque or wrench has a wrong size, name or value."""


class RecordingError(RbdError, ValueError):
    """A recording cannot be read or used; the message names the file, column or joint."""


class SingularError(RbdError, ArithmeticError):
    """
    A joint moves no inertia, or a closed loop is singular; the message names joints and loops.

    Accelerations are not defined there.

    """


class ModelWarning(UserWarning):
    """A robot description looks wrong, but its dynamics can be computed."""


@contextmanager
def named(path: str | PathLike[str]) -> Iterator[None]:
    """Context manager: begin errors with the name of the file that describes a robot."""
    try:
        yield
    except UrdfError as error:
        raise UrdfError(f'{path}: {error}') from None
    except (ModelError, StateError) as error:
        raise ModelError(f'{path}: {error}') from None
