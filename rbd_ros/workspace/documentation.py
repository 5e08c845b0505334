# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Docstrings of the forms of a quantity, from that of its declaration.

A declaration documents what the quantity is, what it returns, and parameters of its own (Other
Parameters). The others have the meanings below in every form: plain function, method, and function
of many states.

"""

from collections.abc import Iterable, Sequence
from inspect import cleandoc
import re
from textwrap import fill

ROWS = {'q': 'Q', 'v': 'V', 'a': 'A', 'tau': 'Tau'}    # names of vectors in batch functions
USUAL = {
    'q': 'configuration (nq,), rad or m',
    'v': 'velocity (nv,), rad/s or m/s',
    'a': 'acceleration (nv,), rad/s^2 or m/s^2',
    'tau': 'torque or force (nv,), N m or N',
    'v_r': 'reference velocity (nv,), rad/s or m/s',
    'a_r': 'reference acceleration (nv,), rad/s^2 or m/s^2',
    'link': 'name of the link'}
OPTIONS = {
    'prescribed': """\
prescribed : array_like of bool, shape (nv,)
    True where the acceleration is given, False where the torque is.""",
    'variation': """\
variation : Variation
    Derivatives of all arguments with respect to p.""",
    'external_wrenches': """\
external_wrenches : mapping of str to array_like, optional
    Moment, N m, and force, N, on links, by name, at the link's origin and in its axes.""",
    'factorization': """\
factorization : {'christoffel', 'body'}
    Of C: by Christoffel symbols, or by body twists as in Garofalo et al.; C v is the same."""}
SECTIONS = ('', 'Parameters', 'Returns', 'Raises', 'Notes')     # in their order
MARGIN = '    '


def sections(doc: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by their titles; '' is the first."""
    found = re.split(r'\n*^(\w+(?: Parameters)?)\n-+\n', cleandoc(doc), flags=re.MULTILINE)
    return {'': found[0], **dict(zip(found[1::2], found[2::2]))}


def join(found: dict[str, str]) -> str:
    """Return the docstring with these sections."""
    return '\n\n'.join(f"{title}\n{'-' * len(title)}\n{found[title]}" if title else found['']
                       for title in SECTIONS if found.get(title)) + '\n'


def form_doc(doc: str, names: Sequence[str], robot: str = '', returns: str | None = None) -> str:
    """Return the docstring of a plain function, or of a method, given that of the declaration."""
    found = sections(doc)
    usual = [name for name in names if name in USUAL]
    first = '; '.join([*['robot'] * bool(robot), *(USUAL[name] for name in usual)])
    found['Parameters'] = '\n'.join([', '.join([*[robot] * bool(robot), *usual]), fill(
        f'{first[:1].upper()}{first[1:]}.', 92, initial_indent=MARGIN, subsequent_indent=MARGIN),
        *filter(None, [found.pop('Other Parameters', None)]),
        *(OPTIONS[name] for name in names if name in OPTIONS)])
    return join(found if returns is None else {**found, 'Returns': returns})


def states_doc(doc: str, names: Iterable[str]) -> str:
    """Return the docstring of a function of many states, given that of one state's."""
    found, names = sections(doc), list(names)
    found[''] = re.sub(r'\.(\n|$)', r', for each of many states.\1', found[''], count=1)
    labels, link = [name for name in names if name in ROWS.values()], 'link' in names
    shapes = ', '.join(f"(states, n{'q' if label == 'Q' else 'v'})" for label in labels)
    found['Parameters'] = '\n'.join([
        f"model, {', '.join(labels)}{', link' * link}",
        f'{MARGIN}Robot; states in rows, {shapes}, units as of one state'
        f"{'; name of the link' * link}.",
        *(OPTIONS[name] for name in names if name in OPTIONS),
        f'out, threads, progress\n{MARGIN}See `rbd_ros.batch`.'])
    found['Returns'] = re.sub(r'\bshape \(([^()]*?),?\)', r'shape (states, \1)',
                              found.get('Returns', ''))
    return join(found)
