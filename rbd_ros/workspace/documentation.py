# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Docstrings of `Workspace` methods and batch functions, derived from those of plain functions."""

from collections.abc import Callable
from inspect import cleandoc, signature
import re
from typing import Any, TypeVar

Function = TypeVar('Function', bound=Callable[..., Any])

ROWS = {'q': 'Q', 'v': 'V', 'a': 'A', 'tau': 'Tau'}    # names of vectors in batch functions
SHARED = {'prescribed', 'external_wrenches'}
OPTIONS = 'out, threads, progress\n    See `rbd_ros.batch`.'


def sections(doc: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by their titles; '' is the first."""
    found = re.split(r'\n*^(\w+)\n-+\n', cleandoc(doc), flags=re.MULTILINE)
    return {'': found[0], **dict(zip(found[1::2], found[2::2]))}


def parameters(section: str) -> list[tuple[list[str], str]]:
    """Return the names and the text of each entry of the section of parameters."""
    return [(re.split(r', *', entry.partition(' :')[0].partition('\n')[0]), entry)
            for entry in re.split(r'\n(?=\S)', section)]


def join(found: dict[str, str]) -> str:
    """Return the docstring with these sections."""
    return '\n\n'.join(f"{title}\n{'-' * len(title)}\n{text}" if title else text
                       for title, text in found.items() if text) + '\n'


def method_doc(plain: str, own: str | None) -> str:
    """Return the docstring of a method: that of the function, without the robot."""
    found = sections(plain)
    found['Parameters'] = re.sub(r'^model, (.*\n +)Robot; ', r'\1', found.get('Parameters', ''))
    if own is not None:
        found[''] = own.strip()
        found.pop('Returns', None)
    return join(found)


def states_doc(plain: str, labels: tuple[str, ...]) -> str:
    """Return the docstring of the function for many states."""
    found = sections(plain)
    found[''] = re.sub(r'\.(\n|$)', r', for each of many states.\1', found[''], count=1)
    shapes = [f"(states, n{'q' if label == 'Q' else 'v'})" for label in labels]
    (first, _), *others = parameters(found.get('Parameters', ''))
    link = 'link' in first
    entries = [f"model, {', '.join(labels)}{', link' * link}\n"
               f"    Robot; states in rows, {', '.join(shapes)}, units as of one state"
               f"{'; name of the link' * link}."]
    entries += [text for names, text in others if SHARED.issuperset(names)]
    found['Parameters'] = '\n'.join([*entries, OPTIONS])
    found['Returns'] = re.sub(r'\bshape \(([^()]*?),?\)', r'shape (states, \1)',
                              found.get('Returns', ''))
    return join(found)


def documented_for_states(plain: Callable[..., Any]) -> Callable[[Function], Function]:
    """Document a function for many states by its own summary and the plain function's sections."""
    def document(function: Function) -> Function:
        labels = tuple(name for name in signature(function).parameters if name in ROWS.values())
        found = sections(states_doc(plain.__doc__ or '', labels))
        found[''] = sections(function.__doc__ or '')['']
        function.__doc__ = join(found)
        return function
    return document
