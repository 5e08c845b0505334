# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Names and other texts from outside, formatted for messages."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches

# How many names a list spells out, and how many characters a text may have.
MOST_NAMES, MOST_CHARACTERS, VALUE_CHARACTERS = 40, 2000, 120


def printable(text: str, most: int = MOST_CHARACTERS) -> str:
    r"""
    Return a text on one line, without control characters and not too long.

    Parameters
    ----------
    text : str
        Any text: a line break in a name must not forge a line of a log, and an escape sequence
        must not colour a terminal.
    most : int
        Characters that are kept.

    Returns
    -------
    str
        With escapes (``\n``, ``\x1b``) in place of what cannot be printed.

    """
    if len(text) > most:
        text = f'{text[:most]} ... ({len(text) - most} more characters)'
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else c.encode('unicode_escape').decode() for c in text)


def shown(value: object) -> str:
    """Return the repr of a value, shortened, for messages."""
    return printable(repr(value), VALUE_CHARACTERS)


def first_twice(names: Iterable[str]) -> str | None:
    """Return the first name that was there before, or None."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def listed(names: Iterable[str], most: int = MOST_NAMES) -> str:
    """
    Return names, separated by commas, with a count in place of those that are too many.

    Parameters
    ----------
    names : iterable of str
        The names.
    most : int
        How many of them are spelt out.

    Returns
    -------
    str
        ``'a, b, c and 7 more'``.

    """
    names = list(names)
    more = f' and {len(names) - most} more' if len(names) > most else ''
    return ', '.join(names[:most]) + more


def did_you_mean(name: str, known: Collection[str], otherwise: str) -> str:
    """
    Return the end of a sentence about a name that does not exist.

    Parameters
    ----------
    name : str
        The name.
    known : collection of str
        The names that exist.
    otherwise : str
        The end of the sentence if none of these is similar.

    Returns
    -------
    str
        ``", did you mean 'gravity'?"``, or the other end.

    """
    near = get_close_matches(name, known, 1)
    return f", did you mean '{near[0]}'?" if near else otherwise


def arrows(names: Sequence[str], most: int = MOST_NAMES) -> str:
    """
    Return names, joined by arrows, with a count in place of those that are too many.

    Parameters
    ----------
    names : list of str
        The names.
    most : int
        How many of them are spelt out.

    Returns
    -------
    str
        ``'a -> b -> ... (7 more) ... -> z'``.

    """
    if len(names) > most:
        names = [*names[:most // 2], f'... ({len(names) - most} more) ...', *names[-most // 2:]]
    return ' -> '.join(names)
