# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The time of a node for ages and for stamps, simulated or not."""

from collections.abc import Callable, Iterator
from time import monotonic, time

from builtin_interfaces.msg import Time
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import WARN
from rclpy.clock import JumpThreshold, ROSClock, TimeJump
from rclpy.duration import Duration

MAX_STEP = 1.0    # s; a longer step of simulated time is a jump


class Clocks(Part):
    """
    The clocks of a node that may use simulated time.

    Ages are measured with one clock at a time: with /clock if use_sim_time is set and /clock is
    received, else with the machine's monotonic clock. A change of the clock invalidates earlier
    times, so ``on_jump`` is called with an explanation, as for a jump of time.

    """

    def __init__(self, clock: ROSClock, on_jump: Callable[[str], None]) -> None:
        self._clock, self._on_jump = clock, on_jump
        # Whether use_sim_time is set, and whether ages are measured with /clock.
        self.simulated = clock.ros_time_is_active
        self._by_simulation = False
        self._handle = clock.create_jump_callback(
            JumpThreshold(min_forward=Duration(seconds=MAX_STEP),
                          min_backward=Duration(nanoseconds=-1), on_clock_change=True),
            post_callback=self._jumped)

    def close(self) -> None:
        self._handle.unregister()

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield a warning if simulated time is awaited."""
        if self.simulated and not self.stamp_time():
            yield WARN, ('use_sim_time is set, but nothing arrives on /clock: stamps are not '
                         'checked')

    def _jumped(self, jump: TimeJump) -> None:
        switched = self._clock.ros_time_is_active != self.simulated
        self.simulated = self._clock.ros_time_is_active
        if switched:
            self._on_jump(f'use_sim_time was turned {"on" if self.simulated else "off"}')
        else:
            step = 1e-9 * jump.delta.nanoseconds
            self._on_jump(
                f'time jumped {"back" if step < 0.0 else "forward"} by {abs(step):.6g} s')

    def stamp_time(self) -> float:
        """Return the time that stamps are compared with, s; 0 before the first /clock."""
        if not self.simulated:
            return time()
        with self._clock.handle:
            return 1e-9 * self._clock.handle.get_now().nanoseconds

    def stamp(self) -> Time:
        """Return the current time as a stamp of messages."""
        return self._clock.now().to_msg()

    def age_time(self) -> float:
        """Return the time that ages are computed from, s."""
        now = self.stamp_time() if self.simulated else 0.0
        if (now > 0.0) != self._by_simulation:
            self._by_simulation = now > 0.0
            self._on_jump('ages are now measured by '
                          + ('/clock' if self._by_simulation else "the machine's clock"))
        return now or monotonic()

    @staticmethod
    def steady_time() -> float:
        """Return the machine's monotonic time, s, which times commands."""
        return monotonic()
