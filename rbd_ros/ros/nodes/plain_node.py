# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A node whose parameters are read once, when it starts."""

import sys
from typing import Any, ClassVar

from rbd_ros import RbdError
from rbd_ros._internal.setting import Setting
from rbd_ros.ros.parameters.parameters import BadParameter, declare, read, usage
from rbd_ros.ros.runtime.rclpy_workarounds import guard_services, QosOverrides
from rbd_ros.ros.runtime.report import Log, Report


class PlainNode(QosOverrides):
    """A node with the name `program`; `_given` holds the values of its `parameters`."""

    errors = (RbdError, OSError, BadParameter)
    program: ClassVar[str]
    parameters: ClassVar[dict[str, Setting]]

    def __init__(self, **options: Any) -> None:
        super().__init__(self.program, **options)
        self._log, self._report = Log(self.get_logger()), Report()
        guard_services(self, self._log)
        self._given = read(self, self.parameters, (), declare(self, self.parameters, self._log))

    @classmethod
    def usage(cls) -> str:
        """Return the text that `--help` prints."""
        return usage(cls.program, str(sys.modules[cls.__module__].__doc__), cls.parameters)

    def uses_events(self) -> bool:
        """Return whether the events executor spins the node."""
        return False

    def finish(self) -> None:
        """Do nothing: no output needs an orderly end."""
