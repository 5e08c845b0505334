# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The time of a node: for ages and for stamps, simulated or not."""

from collections.abc import Callable
from time import monotonic, time

from builtin_interfaces.msg import Time
from rclpy.clock import JumpThreshold, ROSClock, TimeJump
from rclpy.duration import Duration

# s; a longer step of simulated time is a jump
LONGEST_STEP = 1.0


class Clocks:
    """
    The clocks of a node that may use simulated time.

    Ages are measured by one clock at a time: by simulated time as soon as /clock is received, else
    by the machine's monotonic clock. A change of the clock makes times that were taken before
    meaningless, so ``on_jump`` is called as at a jump.

    Parameters
    ----------
    clock : rclpy.clock.ROSClock
        The node's clock.
    on_jump : callable
        Called with a short explanation when time jumps, or the clock changes.

    Attributes
    ----------
    simulated : bool
        Whether use_sim_time is set.

    """

    def __init__(self, clock: ROSClock, on_jump: Callable[[str], None]) -> None:
        self._clock, self._on_jump = clock, on_jump
        self.simulated = clock.ros_time_is_active
        self._by_simulation = False
        self._handle = clock.create_jump_callback(
            JumpThreshold(min_forward=Duration(seconds=LONGEST_STEP),
                          min_backward=Duration(nanoseconds=-1), on_clock_change=True),
            post_callback=self._jumped)

    def close(self) -> None:
        """Stop watching for jumps."""
        self._handle.unregister()

    def _jumped(self, jump: TimeJump) -> None:
        switched = self._clock.ros_time_is_active != self.simulated
        self.simulated = self._clock.ros_time_is_active
        if switched:
            self._on_jump(f'use_sim_time was turned {"on" if self.simulated else "off"}')
        else:
            step = 1e-9 * jump.delta.nanoseconds
            self._on_jump(f'time jumped {"back" if step < 0.0 else "forward"} by {abs(step):.6g} '
                          's')

    def stamp_time(self) -> float:
        """Return the time to compare stamps with, s; 0 before the first /clock."""
        if not self.simulated:
            return time()
        with self._clock.handle:
            return 1e-9 * self._clock.handle.get_now().nanoseconds

    def stamp(self) -> Time:
        """Return the present time as a stamp of messages."""
        return self._clock.now().to_msg()

    def age_time(self) -> float:
        """Return the time to compute ages from, s."""
        now = self.stamp_time() if self.simulated else 0.0
        if (now > 0.0) != self._by_simulation:
            self._by_simulation = now > 0.0
            self._on_jump('ages are now measured by '
                          + ('/clock' if self._by_simulation else "the machine's clock"))
        return now or monotonic()

    @staticmethod
    def steady_time() -> float:
        """Return the machine's monotonic time, s, which commands are timed by."""
        return monotonic()
