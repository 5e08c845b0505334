# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""YAML from outside: what cannot be read is refused in one line, before it costs anything."""

from pathlib import Path
import re
import subprocess
import sys

from command_line import ARM, code_of, one_line
import pytest
from rbd_ros import ModelError
from rbd_ros._internal import yaml_files
from rbd_ros._internal.yaml_files import read_yaml
import yaml

PACKAGE = Path(read_yaml.__code__.co_filename).parent
# Each alias stands for ten times as many values as the one before.
LAUGHS = 'a: &a [0,0,0,0,0,0,0,0,0,0]\n' + ''.join(
    f'{b}: &{b} [{", ".join([f"*{a}"] * 10)}]\n' for a, b in zip('abcdefghi', 'bcdefghij'))
# libyaml of PyYAML 6.0.4 has a limit of its own, at 1000.
DEEP = '(nested more than 100 deep|exceeded maximum nesting depth)'
BAD = {
    'deep lists': (b'[' * 100_000, f'line 1: .*{DEEP}'),
    'deep keys': (b'? ' * 100_000, DEEP),
    'a little too deep': (b'[' * 101 + b']' * 101, 'line 1: .*nested more than 100 deep'),
    'deep by aliases': (b'a: &a ' + b'[' * 60 + b']' * 60 + b'\nb: ' + b'[' * 60 + b'*a',
                        'line 2: .*nested more than 100 deep'),
    'aliases of aliases': (LAUGHS.encode(), r'line 6: .*more than 1000000 values, aliases incl'),
    'an alias of itself': (b'a: &a [*a]', "line 1: .*'\\*a' refers to nothing before it"),
    'an alias of nothing': (b'a: *b', "'\\*b' refers to nothing before it"),
    'a long number': (b'a: 1\nb: ' + b'9' * 5000, "line 2: .*'9+ ... .* has more than 64 bits"),
    'a number of 65 bits': (b'a: 18446744073709551616', 'has more than 64 bits'),
    'a number of base 60': (b'a: 1' + b':59' * 5000, 'has more than 64 bits'),
    'no date': (b'a:\n- 2001-02-30', "line 2: .*'2001-02-30' is no timestamp"),
    'no truth value': (b'a: !!bool maybe', "line 1: .*'maybe' is no bool"),
    'no number': (b'!!int few', "'few' is no int"),
    'no bytes': (b'!!binary abc', 'failed to decode'),
    'a key that is a list': (b'[1]: 2', 'unhashable'),
    'a Python object': (b'!!python/object/apply:os.getcwd []', 'could not determine a constr'),
    'an unknown tag': (b'!drives 1', "constructor for the tag '!drives'"),
    'two documents': (b'1\n--- \n2', 'line 2: .*but found another document'),
    'no end': (b'a: [1, 2', "expected ',' or ']'"), 'a tab': (b'a:\n\t- 1', 'cannot start'),
    'no text': (b'\xff\xfe\xfd', 'this is not YAML'),
    'control characters': (b'a: \x1b[31m', 'this is not YAML'),
    'escapes': (b'a: *"\\e[31m"', 'this is not YAML'), 'zeros': (bytes(1000), 'this is not YAML')}


@pytest.mark.parametrize('kind', BAD)
def test_fault_77_bad_yaml_is_refused_in_one_line(tmp_path, kind):
    text, message = BAD[kind]
    path = tmp_path / 'bad.yaml'
    path.write_bytes(text)
    with pytest.raises(ModelError) as caught:
        read_yaml(path, ModelError)
    line = str(caught.value)
    assert line.startswith(str(path)) and line.isprintable() and len(line) < 800
    assert re.search(message, line), line


@pytest.mark.parametrize('kind', ['deep lists', 'no date', 'control characters'])
def test_bad_yaml_ends_the_command_with_one_line(tmp_path, capsys, kind):
    path = tmp_path / 'bad.yaml'
    path.write_bytes(BAD[kind][0])
    for arguments in (['--params', str(path)], [str(path)]):
        assert code_of('torques', ARM, *arguments) == 1
        assert one_line(capsys).startswith(f'refused: {path}')


def test_deep_yaml_does_not_overflow_the_stack_of_a_process(tmp_path):
    # A process of its own: today's failure would be a signal that ends this one.
    (tmp_path / 'metadata.yaml').write_bytes(b'[' * 100_000)
    run = subprocess.run([sys.executable, '-c', (
        'from rbd_ros.identification import read_recording\n'
        f'read_recording({str(tmp_path)!r})')], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and re.search(DEEP, run.stderr), run


def test_files_with_too_many_bytes_or_values_are_refused(tmp_path, monkeypatch):
    with open(tmp_path / 'a.yaml', 'wb') as file:
        file.truncate(2 ** 40)          # a hole, which takes no place
    with pytest.raises(ModelError, match='is longer than 67108864 bytes'):
        read_yaml(tmp_path / 'a.yaml', ModelError)
    monkeypatch.setattr(yaml_files, 'MAX_VALUES', 1000)
    (tmp_path / 'a.yaml').write_text('[' + '0,' * 1001 + ']')
    with pytest.raises(ModelError, match='more than 1000 values'):
        read_yaml(tmp_path / 'a.yaml', ModelError)


def test_files_that_cannot_be_opened_are_rejected(tmp_path):
    for path, message in ((tmp_path, 'Is a directory'), (tmp_path / 'none', 'No such file'),
                          ('a\0b', r'a\\x00b cannot be read: embedded null'), (3, 'cannot be')):
        with pytest.raises(ModelError, match=message):
            read_yaml(path, ModelError)


def test_good_yaml_is_read_as_pyyaml_reads_it(tmp_path):
    text = ('a: &a [1, -9223372036854775808, 18446744073709551615, 1.5, .inf, 1:30, 0x1f, '
            f'0x{"0" * 97}7]\n'
            'b: *a\nc: {<<: {d: &d yes}, e: *d, f: null}\n"g": 2001-01-01\nh: !!str 1\n')
    for encoding in 'utf-8', 'utf-8-sig', 'utf-16':
        (tmp_path / 'a.yaml').write_text(text, encoding=encoding)
        read = read_yaml(tmp_path / 'a.yaml', ModelError)
        assert read == yaml.safe_load(text)
        assert read['b'] == [1, -2 ** 63, 2 ** 64 - 1, 1.5, float('inf'), 90, 31, 7]
    (tmp_path / 'a.yaml').write_text('')
    assert read_yaml(tmp_path / 'a.yaml', ModelError) is None
    # Just within the limits.
    (tmp_path / 'a.yaml').write_text('[' * 100 + ']' * 100)
    assert str(read_yaml(tmp_path / 'a.yaml', ModelError)) == '[' * 100 + ']' * 100
    (tmp_path / 'a.yaml').write_text('1\n---\n2')
    assert read_yaml(tmp_path / 'a.yaml', ModelError, first=True) == 1


def test_one_file_of_the_package_parses_yaml():
    parsing = {path.name for path in PACKAGE.rglob('*.py')
               if re.search(r'yaml\.\w*(load|parse|compose|scan)', path.read_text())}
    assert parsing == {'yaml_files.py'}
