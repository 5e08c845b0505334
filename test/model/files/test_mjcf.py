# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Models read from MJCF have the dynamics that MuJoCo computes for the same document."""

import io
from itertools import product
import json
from pathlib import Path
import sys
import warnings

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.files.mjcf import compile_mjcf, IGNORABLE, is_mjcf, load_mjcf

# It needs MuJoCo.
oracle = pytest.importorskip('mjcf_oracle')

# Rounding, relative to the largest entry.
ROUNDING = 1e-10
# The robots here are made of round numbers.
pytestmark = pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')


def mjcf(bodies, more=''):
    """Return a document of bodies and other elements."""
    return (f'<mujoco model="robot"><compiler angle="radian"/><worldbody>{bodies}</worldbody>'
            f'{more}</mujoco>')


def hinge(name, more='', inside='', slide=False, pos='0 0 .3'):
    """Return a body with a joint about an oblique axis."""
    return (f'<body name="{name}_body" pos="{pos}" quat=".8 .1 .2 .3"><joint name="{name}" '
            f'type="{"slide" if slide else "hinge"}" axis="1 2 -1" {more}/><inertial pos=".1 0 .2"'
            f' mass="1.5" fullinertia=".05 .04 .03 .002 .003 .001"/>{inside}</body>')


TREE = mjcf("""
<body name="a" pos="1 2 3" quat="0.9 .1 .2 .3"><joint type="free" name="f" stiffness="3"
  damping=".4" /><inertial pos=".1 .2 .3" mass="2" fullinertia=".3 .2 .25 .01 .02 .03"/>
  <body name="b" pos=".1 0 .3" quat=".8 0 .3 .1">
    <joint name="h1" axis="1 0 .2" pos=".1 .1 0" ref=".3" armature=".1" stiffness="2"
      springref=".5" damping=".3"/>
    <joint name="s1" type="slide" axis="0 1 1" pos="0 .2 0" ref=".1" stiffness="7"/>
    <joint name="h2" axis="0 1 0" pos="0 0 .1" frictionloss=".2"/>
    <inertial pos="0 .2 .3" mass="1" diaginertia=".3 .2 .25" quat=".5 .1 .2 .3"/>
    <body name="c" pos="0 .3 0"><joint name="ball" type="ball" pos="0 0 .2" armature=".05"
      stiffness="4" damping=".2"/><geom type="capsule" size=".05 .2" mass="1.5"/></body></body>
</body>
<body name="d" pos="0 0 1"><joint name="h3" axis="0 1 0" range="-1 2"/>
  <geom type="box" size=".1 .2 .3" mass="1"/>
  <body name="e" pos="0 0 .5"><joint name="h4" axis="1 0 0" damping="2"/>
    <geom type="box" size=".1 .2 .1" mass="1"/></body>
  <body name="still" pos="0 1 .5"><geom type="sphere" size=".1" mass="1"/></body></body>
""", """<option gravity="0.3 0 -9"/><actuator>
<general joint="h4" gear="3" armature=".02" damping=".1" forcerange="-5 4" forcelimited="true"/>
<motor joint="h3" gear="2" ctrlrange="-7 7"/><motor joint="h3" gear="3" ctrlrange="-1 1"/>
<motor joint="h2"/></actuator>
<keyframe><key name="home" qpos="1 2 3 0 1 0 0  .1 .2 .3  0 0 1 0  .4 .5"/></keyframe>""")


def test_every_kind_of_joint_has_mujocos_dynamics():
    model = load_mjcf(TREE)
    for seed in range(2):
        assert max(oracle.differences(compile_mjcf(TREE), model, seed)) < ROUNDING
    assert np.array_equal(model.gravity, [0.3, 0, -9])


def test_limits_friction_and_names_are_read():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        model = load_mjcf(TREE.replace('mass="1"', 'mass="5"').replace('mass="2"', 'mass="15"')
                          .replace('mass="1.5"', 'mass="5"').replace('diaginertia=".3 .2 .25"',
                                                                     'diaginertia=".03 .02 .025"'))
    assert model.name == 'robot' and not model.warnings
    k = {name: k for k, name in enumerate(model.velocity_names)}
    assert (model.lower[k['h3']], model.upper[k['h3']]) == (-1, 2)
    assert model.effort_limit[k['h3']] == 2 * 7 + 3 * 1
    assert model.effort_limit[k['h4']] == 3 * 5
    assert model.effort_limit[k['h2']] == model.effort_limit[k['h1']] == np.inf
    assert model.friction[k['h2']] == 0.2 and model.friction.sum() == 0.2
    # 9 times the rotor of the actuator, whose gear ratio is 3.
    assert np.isclose(model.armature[k['h4']], 9 * 0.02)
    assert 'still' in model.link_names and 'c' in model.link_names


LIMITS = {      # Attributes of the joint, its actuators, and the largest effort.
    'none': ('', '', np.inf),
    'of the joint, below': ('actuatorfrcrange="-5 4"', '<motor joint="one"/>', 5.0),
    'of the joint, above': ('actuatorfrcrange="-3 8"', '<motor joint="one"/>', 8.0),
    'of the joint alone': ('actuatorfrcrange="-3 8"', '', 8.0),
    'of force, above': ('', '<motor joint="one" forcerange="-5 6"/>', 6.0),
    'of force, with a gear': ('', '<motor joint="one" gear="-3" forcerange="-5 4"/>', 15.0),
    'of control, with a gear': ('', '<motor joint="one" gear="2" ctrlrange="-6 7"/>', 14.0),
    'of control, with a gain': ('', '<general joint="one" gainprm="-5" ctrlrange="-1 2"/>', 10.0),
    'force below control': ('', '<motor joint="one" gear="2" ctrlrange="-7 2" forcerange="-3 1"/>',
                            6.0),
    'control below force': ('', '<motor joint="one" gear="2" ctrlrange="-1 2" '
                            'forcerange="-9 10"/>', 4.0),
    'joint below control': ('actuatorfrcrange="-3 2"', '<motor joint="one" ctrlrange="-7 7"/>',
                            3.0),
    'two': ('', '<motor joint="one" gear="2" ctrlrange="-7 7"/>'
            '<motor joint="one" gear="3" forcerange="-1 2"/>', 20.0),
    'two, beyond the joint': ('actuatorfrcrange="-4 5"', '<motor joint="one" ctrlrange="-3 3"/>'
                              '<motor joint="one" ctrlrange="-3 3"/>', 5.0),
    'two, one without': ('', '<motor joint="one" ctrlrange="-3 3"/><motor joint="one"/>', np.inf),
    'two, one of them idle': ('', '<motor joint="one" ctrlrange="-3 3"/>'
                              '<motor joint="one" gear="0"/>', 3.0),
    'a position servo': ('', '<position joint="one" kp="10" forcerange="-6 2"/>', 6.0),
    'of another joint': ('', '<motor joint="two" ctrlrange="-3 3"/>', np.inf),
    'in the axes of the parent': ('', '<motor jointinparent="one" ctrlrange="-1 2"/>', 2.0)}


@pytest.mark.parametrize('name', LIMITS)
def test_effort_limits_are_the_largest_that_mujoco_exerts(name):
    import mujoco
    joint, actuators, expected = LIMITS[name]
    text = mjcf(hinge('one', joint, hinge('two')), f'<actuator>{actuators}</actuator>')
    model = load_mjcf(text)
    assert model.effort_limit.tolist()[model.velocity_names.index('one')] == expected
    compiled = compile_mjcf(text)
    data, found = mujoco.MjData(compiled), [0.0]
    for signs in product((-1e9, 1e9), repeat=compiled.nu):
        data.ctrl[:] = signs
        mujoco.mj_forward(compiled, data)
        found.append(abs(data.qfrc_actuator[0]))
    # Without an actuator, the joint's own limit is what others may exert.
    if 'joint="one"' in actuators or 'jointinparent="one"' in actuators:
        assert (max(found) if max(found) < 1e8 else np.inf) == expected


FLAGS = {       # Properties that a flag switches off.
    None: (), 'gravity': ('gravity',), 'spring': ('stiffness',), 'damper': ('damping',),
    'equality': ('coupling',), 'frictionloss': ('friction',), 'limit': ('range',),
    'constraint': ('coupling', 'friction', 'range'), 'contact': (), 'actuation': ()}


@pytest.mark.parametrize('flag', FLAGS)
def test_flags_of_mjcf_disable_the_same_forces_as_in_mujoco(flag):
    import mujoco
    text = mjcf(hinge('one', 'stiffness="3" springref="1" damping=".4" frictionloss=".5" '
                      'range="-1 1" limited="true"', hinge('two') + hinge('three')),
                '<equality><joint joint1="two" joint2="three"/></equality>'
                '<tendon><fixed name="cord" {}><joint joint="one" coef="2"/></fixed></tendon>'
                + (f'<option><flag {flag}="disable"/></option>' if flag else ''))
    model, off = load_mjcf(text.format('')), FLAGS[flag]
    found = {'gravity': model.gravity.any(), 'stiffness': model.stiffness.any(),
             'damping': model.damping.any(), 'friction': model.friction.any(),
             'coupling': model.nv == 2, 'range': np.isfinite(model.upper).any()}
    assert found == {name: name not in off for name in found}
    # MuJoCo's own forces and constraints, beyond the limit.
    compiled = mujoco.MjModel.from_xml_string(text.format(''))
    data = mujoco.MjData(compiled)
    data.qpos[0], data.qvel[0] = 1.5, 1.0
    mujoco.mj_forward(compiled, data)
    still = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, still)
    assert found == {'gravity': still.qfrc_bias.any(), 'stiffness': data.qfrc_spring.any(),
                     'damping': data.qfrc_damper.any(), 'friction': data.nf > 0,
                     'coupling': data.ne > 0, 'range': data.nl > 0}
    # The same of tendons: what acts is refused, or named as left out.
    for part, attributes in (('stiffness', 'stiffness="3"'), ('damping', 'damping="3"'),
                             ('friction', 'frictionloss="3"')):
        if part in off:
            load_mjcf(text.format(attributes))
        else:
            with pytest.raises(rbd_ros.ModelError, match="tendon 'cord'"):
                load_mjcf(text.format(attributes))
    notes = load_mjcf(text.format('range="0 1" limited="true"')).warnings
    assert any('the ranges of the tendons cord' in note for note in notes) is ('range' not in off)


def test_keyframes_are_named_configurations():
    model = load_mjcf(TREE)
    home = dict(zip(model.position_names, model.configurations['home']))
    base = [home[f'f_{x}'] for x in ('qx', 'qy', 'qz', 'qw', 'x', 'y', 'z')]
    assert base == [1, 0, 0, 0, 1, 2, 3]
    assert [home[f'ball_{x}'] for x in ('qx', 'qy', 'qz', 'qw')] == [0, 1, 0, 0]
    assert [home[name] for name in ('h1', 's1', 'h2', 'h3', 'h4')] == [0.1, 0.2, 0.3, 0.4, 0.5]
    arm = rbd_ros.with_floating_base(rbd_ros.with_locked_joints(
        model, {'f': [0, 0, 0, 1, 0, 0, 0]}))
    assert np.array_equal(arm.configurations['home'][:7], [0, 0, 0, 1, 0, 0, 0])
    assert arm.configurations['home'][-1] == 0.5


def pair(equality, more='', slide=False):
    """Return two joints in a chain with an equality, and a third one."""
    return mjcf(hinge('one', 'ref=".2" stiffness="3" springref=".4" armature=".3"', hinge(
        'two', 'ref="-.3" damping=".5" stiffness="2"', slide=slide)) + hinge('three'),
        f'{more}<equality>{equality}</equality>')


FIXED = ('<tendon><fixed name="t"><joint joint="one" coef="2"/><joint joint="two" coef="-.5"/>'
         '</fixed><fixed name="u"><joint joint="two" coef="3"/></fixed></tendon>')
COUPLED = {
    'joint': pair('<joint joint1="one" joint2="two" polycoef=".1 -1.5 0 0 0"/>'),
    'hinge to slide': pair('<joint joint1="one" joint2="two" polycoef=".1 20"/>', slide=True),
    'one tendon': pair('<tendon tendon1="t" polycoef=".3"/>', FIXED),
    'two tendons': pair('<tendon tendon1="t" tendon2="u" polycoef=".3 .7"/>', FIXED)}


@pytest.mark.parametrize('name', COUPLED)
def test_linear_equalities_couple_joints(name):
    import mujoco
    compiled, model = compile_mjcf(COUPLED[name]), load_mjcf(COUPLED[name])
    assert model.nv == 2
    assert max(oracle.differences(compiled, model, 1)) < ROUNDING
    # MuJoCo's equality holds on the model's configurations.
    data = mujoco.MjData(compiled)
    data.qpos[:] = oracle.in_mujoco(compiled, model, np.array([0.7, -0.4]), np.zeros(2))[0]
    mujoco.mj_forward(compiled, data)
    assert data.ne == 1 and np.max(np.abs(data.efc_pos[:1])) < ROUNDING


@pytest.mark.parametrize('equalities, fixed, moving', [
    # Displacements from the references .2 and -.3: .25, and .1 + 2 .25.
    ('<joint joint1="two" polycoef=".25"/>', {'two': -0.3 + 0.25}, ('one', 'three')),
    ('<joint joint1="two" polycoef=".25"/><joint joint1="one" joint2="two" polycoef=".1 2"/>',
     {'two': -0.3 + 0.25, 'one': 0.2 + 0.1 + 2.0 * 0.25}, ('three',)),
    ('<joint joint1="one" joint2="two" polycoef=".1 2"/>'
     '<joint joint1="one" joint2="three" polycoef=".2 3"/>', {}, None)])
def test_equalities_fix_joints_and_those_that_follow_and_chains_are_followed(
        equalities, fixed, moving):
    model = load_mjcf(pair(equalities))
    assert model.velocity_names == moving if moving else model.nv == 1
    assert max(oracle.differences(compile_mjcf(pair(equalities)), model,
                                  fixed=fixed)) < ROUNDING


def test_inactive_equalities_have_no_effect():
    text = pair('<joint active="false" joint1="one" joint2="two"/><connect active="false" '
                'body1="one_body" anchor="0 0 0"/>')
    assert load_mjcf(text).nv == 3
    assert max(oracle.differences(compile_mjcf(text), load_mjcf(text))) < ROUNDING


SPRING = '<tendon><fixed name="cord" {}><joint joint="one" coef="2"/></fixed></tendon>'
REFUSED = {
    'polynomial': (pair('<joint name="cam" joint1="one" joint2="two" polycoef="0 1 1"/>'),
                   "equality 'cam', a polynomial", 'nonlinear'),
    'three joints': (pair('<tendon name="sum" tendon1="t"/>', FIXED.replace(
        '</fixed>', '<joint joint="three" coef="1"/></fixed>', 1)), "equality 'sum'", 'equality'),
    'twice': (pair('<joint joint1="one" joint2="two"/><joint name="again" joint1="one" '
                   'joint2="two" polycoef="0 2"/>'), "equality 'again'", 'equality'),
    'tendon spring': (mjcf(hinge('one'), SPRING.format('stiffness="3"')), "tendon 'cord'",
                      'tendon'),
    'tendon friction': (mjcf(hinge('one'), SPRING.format('frictionloss="3"')), "tendon 'cord'",
                        'tendon'),
    'fluid': (mjcf(hinge('one'), '<option density="1.2"/>'), 'the fluid', 'fluid'),
    'free joint': (mjcf('<body><joint name="f" type="free" armature="1"/><geom size=".1"/>'
                        '</body>'), "free joint 'f'", 'free joint'),
    'muscle': (mjcf(hinge('one'), '<actuator><muscle name="biceps" joint="one" '
                    'lengthrange="0 1"/></actuator>'), "muscle 'biceps'", 'muscle'),
    'rotor of a tendon': (mjcf(hinge('one'), SPRING.format('') + '<actuator><general name="winch"'
                               ' tendon="cord" armature="1"/></actuator>'), "actuator 'winch'",
                          'actuator'),
    'nonlinear': (mjcf(hinge('one', 'stiffness="1 2"')), "joint 'one'", 'nonlinear')}


@pytest.mark.parametrize('name', REFUSED)
def test_elements_beyond_links_and_joints_are_refused_by_name(name):
    text, element, kind = REFUSED[name]
    with pytest.raises(rbd_ros.ModelError, match=element) as caught:
        load_mjcf(text)
    assert f"ignore=['{kind}']" in str(caught.value)
    with pytest.warns(rbd_ros.ModelWarning, match=f'{element}.* is ignored'):
        model = load_mjcf(text, ignore=[kind])
    # Without the armature of the free joint, M is another one.
    if 'tendon' not in name and name != 'free joint':
        assert max(oracle.differences(compile_mjcf(text), model)[:2]) < ROUNDING


def test_ignored_parts_of_mjcf_cause_warnings_by_name():
    text = mjcf(hinge('one').replace('<body ', '<body gravcomp="0.5" ') + """
        <body name="bob"><joint name="ball" type="ball" range="0 1" limited="true"/>
        <geom size=".1"/></body>""", """<tendon><fixed name="cord" range="0 1" limited="true">
        <joint joint="one" coef="1"/></fixed></tendon>""")
    names = ('gravcomp of the bodies one_body is', 'the ranges of the ball joints ball are',
             'the ranges of the tendons cord are')
    model = load_mjcf(text)
    for name in names:
        assert any(note.startswith(f'{name} left out') for note in model.warnings), name
    assert max(oracle.differences(compile_mjcf(text), model)) < ROUNDING
    with pytest.raises(rbd_ros.ModelError, match='gravcomp of the bodies one_body'):
        load_mjcf(text, strict=True)
    quiet = text.replace('<worldbody>', '<option><flag gravity="disable" limit="disable"/>'
                         '</option><worldbody>')
    assert not any('left out' in note for note in load_mjcf(quiet).warnings)


def test_plugins_of_actuators_are_no_part_of_a_model():
    text = mjcf(hinge('one'), """<extension><plugin plugin="mujoco.pid"><instance name="p">
        <config key="kp" value="1"/></instance></plugin></extension><actuator>
        <plugin joint="one" plugin="mujoco.pid" instance="p"/></actuator>""")
    model = load_mjcf(text)
    assert not any('left out' in note for note in model.warnings)
    assert max(oracle.differences(compile_mjcf(text), model)) < ROUNDING


def test_files_include_others_and_gravity_can_be_given(tmp_path):
    (tmp_path / 'part.xml').write_text(f'<mujocoinclude>{hinge("one")}</mujocoinclude>')
    (tmp_path / 'robot.xml').write_text(mjcf('<include file="part.xml"/>'))
    model = load_mjcf(tmp_path / 'robot.xml', gravity=(0, 0, -1))
    assert model.velocity_names == ('one',) and model.gravity[2] == -1


def test_nameless_elements_have_names_of_their_own():
    text = mjcf('<body name="body_2"><joint/><geom size=".1"/><body><joint/>'
                '<geom size=".1" pos="1 0 0"/></body></body>')
    model = load_mjcf(text)
    assert model.velocity_names == ('joint_0', 'joint_1') and len(set(model.link_names)) == 3


@pytest.mark.parametrize('bad, message', [
    ('<robot name="r"/>', 'not MJCF'), ('<mujoco><bogus/></mujoco>', 'MuJoCo refuses'),
    ('<!DOCTYPE x><mujoco/>', 'not MJCF'), ('/nowhere.xml', 'cannot be read'),
    ('<mujoco><worldbody><body><joint/></body></worldbody></mujoco>', 'MuJoCo refuses')])
def test_bad_documents_are_refused(bad, message):
    with pytest.raises(rbd_ros.ModelError, match=message):
        load_mjcf(bad)


def test_the_page_and_the_error_name_every_kind_that_can_be_ignored():
    page = (Path(__file__).parents[3] / 'doc/how_to/mjcf.md').read_text(encoding='utf-8')
    table = page.partition('| kind | elements |\n|---|---|\n')[2].partition('\n\n')[0]
    assert {kind for line in table.splitlines()
            for kind in line.split('|')[1].replace('`', '').strip().split(', ')} == set(IGNORABLE)
    for bad, named in ((['everything'], 'everything'), ('equality', "'equality'")):
        with pytest.raises(rbd_ros.ModelError,
                           match=f'some of {", ".join(IGNORABLE)}, got .*{named}'):
            load_mjcf(TREE, ignore=bad)


def test_without_mujoco_the_extra_to_install_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    with pytest.raises(rbd_ros.ModelError, match=r"pip install 'rbd_ros\[mujoco\]'"):
        load_mjcf(TREE)


def test_mjcf_is_recognized():
    assert is_mjcf(TREE) and is_mjcf(b'<?xml version="1.0"?>\n<!-- <robot> -->\n<mujoco/>')
    # In linear time, whatever the comments are.
    comments = '<!-- a --> ' * 20_000
    assert is_mjcf(comments + '<mujoco>') and not is_mjcf(comments + '<robot>')
    assert not is_mjcf('<!-- <mujoco>')
    assert not any(map(is_mjcf, ('<robot/>', '<mujocoinclude/>', 'robot.xml', b'\xff')))


def test_the_command_line_reads_mjcf(tmp_path, capsys):
    from rbd_ros.cli.main import main
    path = tmp_path / 'robot.xml'
    path.write_text(mjcf(hinge('one', 'stiffness="3" springref=".25"'),
                         '<option gravity="0 0 -2"/><keyframe><key name="home" qpos=".5"/>'
                         '</keyframe>'))
    assert main(['check', str(path)]) == 0
    assert ', stiffness 3 N m/rad' in capsys.readouterr().out
    assert main(['check', '--json', str(path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['configurations'] == {'home': [0.5]}
    assert [(one['stiffness'], one['spring_reference']) for one in found['coordinates']] == [
        (3.0, 0.25)]
    assert main(['torques', str(path), '--q', '0.3']) == 0
    assert 'one' in capsys.readouterr().out
    assert main(['compare', str(path), str(path)]) == 0
    other = tmp_path / 'other.xml'
    other.write_text(path.read_text().replace('springref=".25"', 'springref=".5"'))
    assert main(['compare', str(path), str(other)]) == 2
    assert "joint 'one': spring reference: 0.25 / 0.5" in capsys.readouterr().out
    cam = tmp_path / 'cam.xml'
    cam.write_text(REFUSED['polynomial'][0])
    assert main(['check', str(cam)]) == 1
    assert "ignore=['nonlinear']" in capsys.readouterr().err
    assert main(['check', str(cam), '--ignore', 'nonlinear']) == 0
    assert "equality 'cam', a polynomial" in capsys.readouterr().out
    urdf = Path(__file__).parents[3] / 'urdf/demo_arm.urdf'
    assert main(['check', str(urdf), '--ignore', 'equality']) == 1
    assert 'is not MJCF' in capsys.readouterr().err
    assert main(['check', '--floating-base', str(path)]) != 0
    assert '<freejoint/>' in capsys.readouterr().err


def test_shapes_are_drawn():
    trimesh = pytest.importorskip('trimesh')
    from rbd_ros.view.geometry import load_geometry
    text = mjcf("""<geom type="plane" size="1 1 1"/><body name="a" pos="5 0 0"><joint/>
        <geom type="box" size="1 2 3" pos="1 0 0" quat="1 0 0 1" rgba="1 0 0 1"/>
        <geom type="sphere" size="9" group="3" mass="0"/></body>
        <body name="b"><joint/><geom type="capsule" size=".5 1" group="3"/></body>
        <body name="c"><joint/><geom type="mesh" mesh="tetrahedron" mass="1"/></body>
        <body name="d"><joint/><geom type="ellipsoid" size="1 2 3"/></body>
        <body name="e"><joint/><geom type="cylinder" size="1 2"/></body>""",
                """<asset><mesh name="tetrahedron" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/>
        </asset>""")
    model = load_mjcf(text)
    shapes = load_geometry(model, text).shapes
    bounds = {name: trimesh.load_scene(io.BytesIO(shapes[k]), file_type='glb').bounds
              for k, name in enumerate(model.link_names) if k in shapes}
    expected = {'a': [[-1, -1, -3], [3, 1, 3]], 'b': [[-0.5, -0.5, -1.5], [0.5, 0.5, 1.5]],
                'c': [[0, 0, 0], [1, 1, 1]], 'd': [[-1, -2, -3], [1, 2, 3]],
                'e': [[-1, -1, -2], [1, 1, 2]]}
    assert set(bounds) == set(expected)
    for name, box in expected.items():
        # Round shapes have facets.
        assert np.allclose(bounds[name], box, atol=0.02), name
