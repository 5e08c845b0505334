# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Robot descriptions as trees of XML elements: the only place where XML is parsed.

Document types and entities are rejected before parsing.

"""

import codecs
import re

from lxml import etree
from rbd_ros.errors import UrdfError

# Longest text that is read, bytes: forty times the largest known robot description.
LARGEST_TEXT = 64 * 2 ** 20
# Elements that dynamics does not need; what they contain does no harm.
DECORATION = ('visual', 'collision', 'material', 'transmission', 'gazebo', 'ros2_control')
MOST_PREFIXES = 100
# Elements of xacro that by themselves add neither links nor joints.
_XACRO_DEFINITIONS = ('arg', 'property', 'macro', 'include')
_OTHER_FORMATS = {'sdf': ': this is SDF, not URDF',
                  'mujoco': ": this is MJCF, MuJoCo's format, not URDF",
                  'mujocoinclude': ": this is a part of an MJCF file, MuJoCo's format, not URDF"}


def decode(text: str | bytes) -> str:
    """Return a document as text without XML declaration; reject what must not be parsed."""
    if not isinstance(text, (str, bytes)):
        raise UrdfError(f'the text must be str or bytes, got {type(text).__name__}')
    if len(text) > LARGEST_TEXT:
        raise UrdfError(f'the text is longer than the limit of {LARGEST_TEXT} bytes')
    is_file = isinstance(text, bytes)
    if isinstance(text, bytes):
        encoding = 'utf-8-sig'
        declared = re.match(rb'\s*<\?xml[^>]*encoding\s*=\s*["\']([A-Za-z0-9._-]+)["\']', text)
        if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = 'utf-16'
        elif declared and not text.startswith(codecs.BOM_UTF8):
            encoding = declared.group(1).decode()
        try:
            text = text.decode(encoding)
        except (LookupError, UnicodeError) as error:
            raise UrdfError(f'the text cannot be decoded as {encoding}: {error}') from None
    text = text.lstrip('\ufeff \t\r\n')
    if not text.startswith('<'):
        hint = '' if is_file else '; pass the text of the description, not its path'
        raise UrdfError(f'this is not XML: a URDF begins with <robot>, this with {text[:60]!r}'
                        + hint)
    if '<!DOCTYPE' in text or '<!ENTITY' in text:
        raise UrdfError('document types and entities are not allowed: remove <!DOCTYPE ...>')
    return re.sub(r'\A<\?xml[^>]*\?>', '', text)


def parse(text: str, *, comments: bool = False) -> etree._Element:
    """Return the root of a decoded URDF, without default namespace, optionally with comments."""
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True,
                             remove_comments=not comments, remove_pis=not comments,
                             encoding='utf-8')
    try:
        try:
            root = etree.fromstring(text.encode('utf-8'), parser)
        except etree.XMLSyntaxError as error:
            if error.code != etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE:
                raise
            root = etree.fromstring(_with_prefixes(text).encode('utf-8'), parser)
    except (etree.XMLSyntaxError, UnicodeEncodeError, ValueError) as error:
        raise UrdfError(f'the text is not well-formed XML: {error}') from None
    if root.prefix is None and root.tag.startswith('{'):
        for element in [*root.iter(root.tag.partition('}')[0] + '}*')]:
            if element.prefix is None:
                element.tag = etree.QName(element).localname
    if root.tag != 'robot':
        raise UrdfError(f'the outermost element is <{root.tag}>, expected <robot>'
                        + _OTHER_FORMATS.get(root.tag, ''))
    for element in xacro_leftovers(root) if 'xacro' in text else ():
        definition = (element.getparent() is root and root.find('link') is not None
                      and tag_of(element).rpartition(':')[2] in _XACRO_DEFINITIONS)
        if not definition and not any(
                above.tag in DECORATION for above in element.iterancestors()):
            raise UrdfError(f'<{tag_of(element)}> on line {element.sourceline}: run xacro on the '
                            'file first')
    return root


def _with_prefixes(text: str) -> str:
    """Return a document whose root element declares the prefixes that it uses."""
    before, tag, after = text.partition('<robot')
    declared = re.findall(r'xmlns:([\w.-]+)', after.partition('>')[0])
    used = set(re.findall(r'[\s</]([A-Za-z_][\w.-]*):[A-Za-z_]', after)).difference(
        declared, ('xml', 'xmlns'))
    # Each one makes the parser slower.
    declarations = [f' xmlns:{one}="undeclared:{one}"' for one in sorted(used)[:MOST_PREFIXES]]
    return ''.join((before, tag, *declarations, after))


def tag_of(element: etree._Element) -> str:
    """Return the tag of an element as it is written, with its prefix."""
    tag: str = element.tag
    if not tag.startswith('{'):
        return tag
    name = tag.partition('}')[2]
    return f'{element.prefix}:{name}' if element.prefix else name


def xacro_leftovers(root: etree._Element) -> list[etree._Element]:
    """Return the outermost elements of xacro in a document."""
    xacro = '[contains(namespace-uri(), "xacro")]'
    found: list[etree._Element] = root.xpath(f'//*{xacro}[not(ancestor::*{xacro})]')
    return found


class Element:
    """An XML element with typed attributes; ``where`` names its link or joint in errors."""

    def __init__(self, element: etree._Element, where: str) -> None:
        self._element, self.where = element, where
        self._children: dict[str, list[etree._Element]] | None = None

    def child(self, tag: str) -> 'Element | None':
        """Return the only child with a tag, or None."""
        if self._children is None:
            self._children = {}
            for child in self._element:
                self._children.setdefault(child.tag, []).append(child)
        found = self._children.get(tag)
        if found is None:
            return None
        if len(found) > 1:
            raise UrdfError(f'{self.where} has two <{tag}> elements')
        return Element(found[0], self.where)

    def children(self, tag: str) -> 'list[Element]':
        return [Element(found, self.where) for found in self._element.iterchildren(tag)]

    def required_child(self, tag: str) -> 'Element':
        """Return the only child with a tag; raise UrdfError if it is missing."""
        found = self.child(tag)
        if found is None:
            raise self._missing(tag)
        return found

    def _missing(self, name: str) -> UrdfError:
        return UrdfError(f'{self.where}, line {self._element.sourceline}: '
                         f'<{self._element.tag}> has no {name}')

    def has(self, name: str) -> bool:
        return self._element.get(name) is not None

    def text(self, name: str) -> str:
        """Return a required attribute as text."""
        value = self._element.get(name)
        if value is None:
            raise self._missing(name)
        if '$' in value and ('${' in value or '$(' in value):
            raise UrdfError(f'{self.where}: {name}="{value}" is left over from xacro: run xacro '
                            'on the file first')
        return value

    def number(self, name: str, default: float | None = None) -> float:
        """Return an attribute as a number; it is required if there is no default."""
        return self._numbers(name, 1, None if default is None else (default,))[0]

    def vector(self, name: str, default: tuple[float, ...] | None = None,
               count: int = 3) -> tuple[float, ...]:
        """Return an attribute as several numbers; it is required if there is no default."""
        return self._numbers(name, count, default)

    def _numbers(self, name: str, count: int,
                 default: tuple[float, ...] | None) -> tuple[float, ...]:
        """Return the numbers in an attribute, which may be NaN or infinite."""
        text = self._element.get(name)
        if text is None:
            if default is None:
                raise self._missing(name)
            return default
        try:
            found = (float(text),) if count == 1 else tuple(map(float, text.split()))
        except ValueError:
            found = ()
        # Python also accepts 1_000.
        if len(found) != count or '_' in text:
            raise UrdfError(f'{self.where}: <{self._element.tag} {name}="{text}"> must hold '
                            f'{count} number{"s" if count > 1 else ""}')
        return found
