# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Format names and other external texts for messages."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

# Limits in messages: names in a list, characters of a text, characters of a value's repr.
MOST_NAMES, MOST_CHARACTERS, VALUE_CHARACTERS = 40, 2000, 120


def printable(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text safe for logs: on one line, shortened, control characters escaped."""
    if len(text) > most:
        text = f'{text[:most]} ... ({len(text) - most} more characters)'
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode() for c in text)


def shown(value: object) -> str:
    """Return the repr of a value, shortened, for messages."""
    return printable(repr(value), VALUE_CHARACTERS)


def first_twice(names: Iterable[str]) -> str | None:
    """Return the first repeated name, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def listed(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """Return names separated by commas, excess ones as a count: ``'a, b and 7 more'``."""
    names = list(names)
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return ', '.join(names[:most]) + more


def amount(count: int, noun: str) -> str:
    """Return ``'1 link'`` or ``'2 links'``."""
    return f'{count} {noun}{"s" * (count != 1)}'


def counted(kind: str, names: Collection[str]) -> str:
    """Return ``"joint 'a'"`` for one name, ``'2 joints, a, b'`` for several."""
    if len(names) == 1:
        return f"{kind} '{next(iter(names))}'"
    return f'{len(names)} {kind}s, {listed(names)}'


def did_you_mean(name: str, known: Collection[str], otherwise: str) -> str:
    """Return ``", did you mean 'gravity'?"`` if a known name is similar, ``otherwise`` if not."""
    near = get_close_matches(name, known, 1)
    return f", did you mean '{near[0]}'?" if near else otherwise


def arrows(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """Return names joined by arrows: ``'a -> b -> ... (7 more) ... -> z'``."""
    if len(names) > most:
        names = [*names[:most // 2], f'... ({len(names) - most} more) ...', *names[-most // 2:]]
    return ' -> '.join(names)
