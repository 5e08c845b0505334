# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""However a URDF is broken, it ends as a robot with finite numbers or in an error of ours."""

from covering import covering
from hypothesis import given, HealthCheck, settings, strategies as st
from lxml import etree
import numpy as np
import pytest
import rbd_ros
from rbd_ros import RbdError
from rbd_ros.model.positions.configurations import random_configuration
from urdf_texts import INERTIAL, joint, link, mimic, robot

# Warnings of an overflow count.
pytestmark = pytest.mark.filterwarnings('error', 'ignore::rbd_ros.ModelWarning')
SOUND = robot(
    link('a'), link('b'), link('c'), link('d', ''), link('e'), link('f'), link('g'),
    joint('i', 'a', 'b', inside='<origin xyz="0 0.1 0.2" rpy="0.1 0.2 0.3"/><axis xyz="1 0 1"/>'
          '<dynamics damping="0.1" friction="0.2"/>'),
    joint('j', 'b', 'c', 'prismatic'), joint('k', 'b', 'd', 'fixed'),
    joint('l', 'd', 'e', inside=mimic('i', '-0.5', '0.1')), joint('m', 'e', 'f', 'continuous'),
    joint('n', 'a', 'g', 'floating'))
# What mistakes, bad tools and bad people write into numbers and names.
TEXTS = st.one_of(
    st.sampled_from(['', ' ', 'nan', 'inf', '-inf', '0', '-1', '1e308', '-1e308', '1e-320', '1,5',
                     '1kg', '${m}', '0 0 0', '1 2', 'nan nan nan', '1e200 0 0', 'a', 'b', 'i', 'j',
                     'fixed', 'floating', 'planar', 'revolute', '\u0661', '1_0', '../..', '\x7f']),
    st.floats().map(str), st.text(st.characters(codec='utf-8', exclude_categories=['Cc', 'Cs']),
                                  max_size=6))


@st.composite
def broken_urdfs(draw):
    """Return a URDF with a few mistakes in it."""
    root = etree.fromstring(SOUND)
    for _ in range(draw(st.integers(1, 4))):
        elements = list(root.iter())
        element = elements[draw(st.integers(0, len(elements) - 1))]
        action = draw(st.sampled_from(['set', 'set', 'drop', 'remove', 'double', 'add', 'move']))
        names = sorted(element.attrib)
        if action == 'set' and names:
            element.set(draw(st.sampled_from(names)), draw(TEXTS))
        elif action == 'drop' and names:
            del element.attrib[draw(st.sampled_from(names))]
        elif action == 'add':
            element.append(etree.fromstring(draw(st.sampled_from(
                [INERTIAL, '<limit/>', '<axis xyz="0 0 0"/>', '<mimic joint="i"/>', '<link/>',
                 '<origin rpy="1e9 1e9 1e9"/>', '<mesh filename="file:///x"/>']))))
        elif element.getparent() is not None and action == 'remove':
            element.getparent().remove(element)
        elif element.getparent() is not None and action == 'double':
            element.addnext(etree.fromstring(etree.tostring(element)))
        elif element.getparent() is not None and action == 'move':
            root.insert(0, element)
    text = etree.tostring(root)
    if draw(st.booleans()):
        return text
    place = draw(st.integers(0, len(text)))
    return text[:place] + draw(st.binary(max_size=4)) + text[place + draw(st.integers(0, 3)):]


def check_that_a_mutated_urdf_gives_a_finite_robot_or_our_error(text, strict, floating, seed):
    try:
        model = rbd_ros.load_urdf_string(text, strict=strict, floating_base=floating)
        rng = np.random.default_rng(seed)
        q = random_configuration(model, rng)
        v, a = rng.normal(size=(2, model.nv))
        results = [*rbd_ros.all_terms(model, q, v), rbd_ros.inverse_dynamics(model, q, v, a)]
        results.append(rbd_ros.forward_dynamics(model, q, v, a))
    except RbdError as error:
        assert str(error)
        return
    assert all(np.all(np.isfinite(x)) for x in results)


@pytest.mark.parametrize('count', covering([100, 1000], 100))
def test_a_mutated_urdf_gives_a_finite_robot_or_our_error(count):
    settings(max_examples=count, deadline=None, derandomize=True, database=None,
             suppress_health_check=[HealthCheck.too_slow])(
        given(broken_urdfs(), st.booleans(), st.booleans(), st.integers(0, 99))(
            check_that_a_mutated_urdf_gives_a_finite_robot_or_our_error))()


@pytest.mark.parametrize('place', ['<axis xyz="0 0 1"/>', '<mass value="1"/>',
                                   '<origin xyz="0 0 0.1"/>', '<parent link="a"/>'])
@pytest.mark.parametrize('inside', ['<mesh filename="file:///x"/>', '<axis/>', '<!-- x -->'])
def test_unexpected_content_of_an_element_is_ignored(place, inside):
    # Found by a search of ten minutes: a KeyError.
    assert place in SOUND
    kind = place[1:].partition(' ')[0]
    text = SOUND.replace(place, f'{place[:-2]}>{inside}</{kind}>')
    got, expected = rbd_ros.load_urdf_string(text), rbd_ros.load_urdf_string(SOUND)
    assert got.velocity_names == expected.velocity_names
    assert got.mass == expected.mass


@pytest.mark.parametrize('before, after, message', [
    ('<origin xyz="0 0 0.1"/>', '<origin xyz="1e200 0 0"/>', "link 'a': its centre of mass is"),
    ('ixx="0.01"', 'ixx="1e263"', "link 'a': its inertia is beyond"),
    ('ixx="0.01"', 'ixx="1e308"', "link 'a': its inertia"),
    ('ixx="0.01"', 'ixx="inf"', "link 'a': its inertia"),
    ('<mass value="1"/>', '<mass value="1e300"/>', "link 'a': its mass is beyond"),
    ('<origin xyz="0 0.1 0.2"', '<origin xyz="1e200 0 0"', "joint 'i': its origin is"),
    ('multiplier="-0.5"', 'multiplier="1e200"', "joint 'l': its mimic multiplier")])
def test_numbers_that_would_overflow_are_refused_by_name(before, after, message):
    # Found by the same search: warnings of an overflow, and terms that were infinite.
    assert before in SOUND
    with pytest.raises(rbd_ros.UrdfError, match=message):
        rbd_ros.load_urdf_string(SOUND.replace(before, after, 1))


@pytest.mark.parametrize('size', ['1e200', '1e-320', '-1e308'])
def test_an_axis_of_any_length_is_normalised(size):
    # Found by the same search.
    model = rbd_ros.load_urdf_string(SOUND.replace('<axis xyz="1 0 1"/>',
                                                   f'<axis xyz="{size} 0 {size}"/>'))
    axis = np.array([1.0, 0.0, 1.0]) * np.sign(float(size)) / np.sqrt(2.0)
    assert np.allclose(model.joints[0].axis, axis)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200)))
def test_any_text_raises_an_error_with_a_message(text):
    try:
        rbd_ros.load_urdf_string(text)
    except RbdError as error:
        assert str(error)
    else:
        raise AssertionError('that is no URDF')
