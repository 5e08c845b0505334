# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The sources of joint states: their joints, clocks and rates.

Messages do not name their publisher. Those with the same names count as one source, which has a
clock of its own: its offset from the node's clock is the smallest difference between receipt and
stamp. Invariant:

1. The age of a sample is never less than the time since its receipt. A source whose clock is ahead
   may be so by a constant; what a message is later than that adds to its age. What a clock is
   behind may be latency and always adds to the age.
2. The leading source times the changes of the state: states count as later only with its stamps.
   Another source leads after it has sent `LEAD` messages between two of the leading one.

"""

from collections.abc import Callable, Collection, Iterator, Sequence
from math import inf

import numpy as np
from rbd_ros._internal.cdr import Stamp
from rbd_ros._internal.text import listed
from rbd_ros.ros.convert import seconds

MAX_SOURCES = 16
LEAD = 4
DRIFT = 0.01    # s/s: how fast the offset of a clock that is ahead may shrink
# Number of messages of a source, and s, the offset of its clock, from which it is reported.
CLOCK_MESSAGES, MIN_OFFSET = 10, 0.02


def prefix_hint(joints: Sequence[str], others: Collection[str]) -> str:
    """Return a hint if names of joints differ by one prefix from other names; else nothing."""
    for why, pairs in (('with', [[(other, joint) for other in others] for joint in joints]),
                       ('without', [[(joint, other) for other in others] for joint in joints])):
        found = [{long.removesuffix(short) for long, short in some if short and long != short
                  and long.endswith(short)} for some in pairs]
        if found and (common := set.intersection(*found)):
            return (f"; joint states name them {why} the prefix '{min(common)}': did you mean a "
                    f'description {why} it (an argument of its xacro file), or joint states of '
                    'another topic (remap joint_states)?')
    return ''


class Source:
    """Messages with the same names."""

    def __init__(self, places: np.ndarray) -> None:
        # Of each known joint, its number, and its indices in the message, in q and in v; and
        # whether the messages have had a position of it.
        self.places, self.measures = places, np.zeros(len(places), bool)
        # Newest stamp; time of receipt of the last message, and the pause before it, s.
        self.stamp, self.received, self.pause = Stamp(0, 0), -inf, inf
        # s: by how much its clock is ahead; least time from stamp to receipt in `count` messages.
        self.ahead, self.offset, self.count = 0.0, inf, 0.0
        self._aged = -inf
        self.since_leader = 0

    def age(self, lag: float | None, now: float) -> float:
        """Return the age, s, of a message received at `now`, `lag` after its stamp."""
        if lag is None:
            return 0.0
        self.ahead = max(-lag, self.ahead - DRIFT * (now - self._aged), 0.0)
        self._aged = now
        self.offset, self.count = min(lag, self.offset), self.count + 1
        return lag + self.ahead


class Sources:
    """All sources of the joint states of a robot; `current` is that of the last message."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Discard all sources."""
        self.by_names: dict[tuple[str, ...], Source] = {}
        self._names: Sequence[str] | None = None
        self.current = Source(np.zeros((0, 4), int))
        self.leader: Source | None = None

    def find(self, names: Sequence[str], places: Callable[[Sequence[str]], np.ndarray]) -> Source:
        """Return the source of messages with these names; `places` returns those of a new one."""
        if names != self._names:
            key = tuple(names)
            if key not in self.by_names:
                source = Source(places(key))
                if len(self.by_names) == MAX_SOURCES:
                    lost = self.by_names.pop(next(iter(self.by_names)))
                    self.leader = None if lost is self.leader else self.leader
                self.by_names[key] = source
            self.current, self._names = self.by_names[key], list(key)
        return self.current

    def note(self, stamp: Stamp, now: float, timeout: float) -> Stamp:
        """Note that samples of the last message were taken; return the newest recent stamp."""
        source = self.current
        source.pause, source.received = now - source.received, now
        if not 0.0 < seconds(source.stamp) - seconds(stamp) <= timeout:
            source.stamp = stamp
        source.since_leader += 1
        if self.leader is None or source is self.leader or source.since_leader >= LEAD:
            self.leader = source
            for one in self.by_names.values():
                one.since_leader = 0
        return max(one.stamp for one in self.by_names.values()
                   if len(one.places) and now - one.received <= timeout)

    def of(self, joint: int, since: float = -inf) -> list[Source]:
        """Return the sources that have measured a joint, and were last heard after `since`, s."""
        return [one for one in self.by_names.values()
                if one.received >= since and joint in one.places[one.measures, 0]]

    def clock_notes(self, names: Sequence[str]) -> Iterator[str]:
        """Yield a sentence, once, about each source whose clock is not that of the node."""
        for one in self.by_names.values():
            if len(one.places) and one.count >= CLOCK_MESSAGES and abs(one.offset) > MIN_OFFSET:
                one.count = -inf
                yield (f'stamps of {listed(names[k] for k in one.places[:, 0])} are '
                       f'{1e3 * abs(one.offset):.3g} ms '
                       + ('ahead of the clock of this node: their ages are measured by their own'
                          if one.offset < 0.0 else
                          'behind the clock of this node, or as late, which adds to their ages'))
