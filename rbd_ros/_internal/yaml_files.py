# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads YAML from outside: the one place where it is parsed.

What is too large or too deep is refused before anything is built of it: libyaml recurses until
the stack ends, and a few aliases of aliases stand for more values than fit into memory.

"""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from rbd_ros._internal.text import printable
import yaml

# Bytes that are read, values (what aliases repeat included), and how deep they may be nested.
LARGEST, MOST_VALUES, DEEPEST = 64 * 2 ** 20, 1_000_000, 100
# What a whole number may be, as in messages of ROS, and the longest text of one.
WHOLE, DIGITS = range(-2 ** 63, 2 ** 64), 100
# The one written in C takes a tenth of the time.
_Base: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class _Loader(_Base):
    """A loader that reports every value that it cannot convert with its line."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception as error:      # of any kind: KeyError, OverflowError, binascii.Error
            raise _at(node, f'{_shown(node)} is no {node.tag.rpartition(":")[2]}') from error

    def construct_int(self, node: yaml.ScalarNode) -> int:
        """Return a whole number of 64 bits, which arrays and messages can hold."""
        number = self.construct_yaml_int(node) if len(node.value) <= DIGITS else WHOLE.stop
        if number not in WHOLE:
            raise _at(node, f'{_shown(node)} has more than 64 bits; if it is a float, write it '
                      'with a point')
        return int(number)


_Loader.add_constructor('tag:yaml.org,2002:int', _Loader.construct_int)


def _shown(node: yaml.Node) -> str:
    return f"'{printable(str(node.value), 60)}'"


def _at(node: yaml.Node | yaml.Event, text: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


def read_yaml(path: str | PathLike[str], error: type[Exception], *,
              first: bool = False) -> Any:
    """
    Return the content of a YAML file.

    Parameters
    ----------
    path : str or path-like
        The file.
    error : type
        What is raised if it cannot be read; the message is one line.
    first : bool
        Whether to ignore documents after the first; else they are refused.

    Returns
    -------
    dict, list, str, int, float, bool, datetime.date or None
        None if the file is empty.

    """
    where = printable(str(path), 300)
    try:
        with Path(path).open('rb') as file:
            text = file.read(LARGEST + 1)
    except (OSError, TypeError, ValueError) as problem:
        raise error(f'{where} cannot be read: {getattr(problem, "strerror", None) or problem}'
                    ) from None
    if len(text) > LARGEST:
        raise error(f'{where} is longer than {LARGEST} bytes, the most that is read from YAML; '
                    'use a table, or several files')
    try:
        _check(yaml.parse(text, Loader=_Loader))
        loader = _Loader(text)
        if not first:
            return loader.get_single_data()
        return loader.get_data() if loader.check_data() else None
    except yaml.MarkedYAMLError as problem:
        if problem.problem_mark is not None:
            where += f', line {problem.problem_mark.line + 1}'
        raise error(f'{where}: this is not YAML that can be read: '
                    f'{printable(str(problem.problem), 300)}') from None
    except (yaml.YAMLError, UnicodeError) as problem:
        raise error(f'{where}: this is not YAML: '
                    + printable(' '.join(str(problem).split()), 300)) from None


def _check(events: Iterable[yaml.Event]) -> None:
    """Raise YAMLError if the first document is too large, too deep, or contains itself."""
    values = 0
    # Of the lists and mappings around: anchor, number of values before, and greatest depth below.
    around: list[tuple[str | None, int]] = []
    deepest = [0]
    # Of what has an anchor: number of values and depth.
    known: dict[str | None, tuple[int, int]] = {}
    for event in events:
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = around.pop()
            depth = deepest.pop()
            deepest[-1] = max(deepest[-1], depth)
            known[anchor] = values - before, depth - len(around)
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        size, depth = 1, 0
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in known:
                raise _at(event, f"'*{printable(event.anchor, 60)}' refers to nothing before it")
            size, depth = known[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, values))
            deepest.append(0)
        else:
            known[event.anchor] = 1, 0
        values += size
        deepest[-1] = max(deepest[-1], len(around) + depth)
        if values > MOST_VALUES:
            raise _at(event, f'there are more than {MOST_VALUES} values, aliases included; use a '
                      'table, or several files')
        if deepest[-1] > DEEPEST:
            raise _at(event, f'lists and mappings are nested more than {DEEPEST} deep')
