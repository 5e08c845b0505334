# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads YAML files: the only place where YAML is parsed.

Documents that are too large or too deep are rejected before anything is built: libyaml recurses
until the stack overflows, and a few nested aliases can expand beyond any memory.

"""

from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from rbd_ros._internal.text import printable
import yaml

# Limits: bytes of a file, values (with expanded aliases), levels of nesting.
MAX_BYTES, MAX_VALUES, MAX_DEPTH = 64 * 2 ** 20, 1_000_000, 100
# Range of integers, as in ROS messages, and the largest number of their digits.
INTEGERS, MAX_DIGITS = range(-2 ** 63, 2 ** 64), 100
# The loader in C takes a tenth of the time.
_Base: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class _Loader(_Base):
    """A loader that reports the line of each value that it cannot convert."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except yaml.YAMLError:
            raise
        except Exception as error:      # of any kind: KeyError, OverflowError, binascii.Error
            raise _at(node, f'{_shown(node)} is no {node.tag.rpartition(":")[2]}') from error

    def construct_int(self, node: yaml.ScalarNode) -> int:
        """Return an integer of 64 bits, which arrays and ROS messages can hold."""
        number = self.construct_yaml_int(node) if len(node.value) <= MAX_DIGITS else INTEGERS.stop
        if number not in INTEGERS:
            raise _at(node, f'{_shown(node)} has more than 64 bits; if it is a float, write it '
                      'with a point')
        return int(number)


_Loader.add_constructor('tag:yaml.org,2002:int', _Loader.construct_int)


def _shown(node: yaml.Node) -> str:
    return f"'{printable(str(node.value), 60)}'"


def _at(node: yaml.Node | yaml.Event, text: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=text, problem_mark=node.start_mark)


def read_yaml(path: str | PathLike[str], error: type[Exception], *, first: bool = False) -> Any:
    """Return the content of a YAML file (None if empty); raise ``error`` with one line."""
    # `first` ignores all documents after the first, which are otherwise rejected.
    where = printable(str(path), 300)
    try:
        with Path(path).open('rb') as file:
            text = file.read(MAX_BYTES + 1)
    except (OSError, TypeError, ValueError) as problem:
        raise error(f'{where} cannot be read: {getattr(problem, "strerror", None) or problem}'
                    ) from None
    if len(text) > MAX_BYTES:
        raise error(f'{where} is longer than {MAX_BYTES} bytes, the most that is read from YAML; '
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


def node_parameters(content: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    """Yield the full name, or pattern, and the parameters of each node in a parameter file."""
    for key, value in content.items() if isinstance(content, dict) else ():
        if key == 'ros__parameters':
            yield name or '/**', value
        else:
            yield from node_parameters(value, f"{name}/{str(key).strip('/')}")


def _check(events: Iterable[yaml.Event]) -> None:
    """Raise YAMLError if the first document is too large, too deep, or contains itself."""
    values = 0
    # For each enclosing list or mapping: its anchor and the number of values before it; in
    # `deepest`, the greatest depth below it.
    enclosing: list[tuple[str | None, int]] = []
    deepest = [0]
    # Number of values and depth of each anchored node.
    known: dict[str | None, tuple[int, int]] = {}
    for event in events:
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if isinstance(event, yaml.CollectionEndEvent):
            anchor, before = enclosing.pop()
            depth = deepest.pop()
            deepest[-1] = max(deepest[-1], depth)
            known[anchor] = values - before, depth - len(enclosing)
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        size, depth = 1, 0
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in known:
                raise _at(event, f"'*{printable(event.anchor, 60)}' refers to nothing before it")
            size, depth = known[event.anchor]
        elif isinstance(event, yaml.CollectionStartEvent):
            enclosing.append((event.anchor, values))
            deepest.append(0)
        else:
            known[event.anchor] = 1, 0
        values += size
        deepest[-1] = max(deepest[-1], len(enclosing) + depth)
        if values > MAX_VALUES:
            raise _at(event, f'there are more than {MAX_VALUES} values, aliases included; use a '
                      'table, or several files')
        if deepest[-1] > MAX_DEPTH:
            raise _at(event, f'lists and mappings are nested more than {MAX_DEPTH} deep')
