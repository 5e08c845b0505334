# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The errors of this package. Every message names what is wrong and what to do about it."""


class RbdError(Exception):
    """Base of all errors that rbd_ros raises on purpose."""


class ModelError(RbdError, ValueError):
    """The robot's description is wrong; the message names the link or joint."""


class UrdfError(ModelError):
    """The text is not a URDF that can be read; the message names the element."""


class StateError(RbdError, ValueError):
    """A configuration, velocity, torque or wrench has a wrong size, name or value."""


class RecordingError(RbdError, ValueError):
    """A recording cannot be read or used; the message names the file, column or joint."""


class SingularError(RbdError, ArithmeticError):
    """A joint moves no inertia, so that its acceleration is undefined; the message names it."""


class ModelWarning(UserWarning):
    """Something in a robot's description is odd, but its dynamics can be computed."""
