# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Deserializing as this middleware, another, and that of another distribution do."""

import sys

import pytest
from rbd_ros._internal import cdr
from rclpy import serialization
from rclpy.serialization import deserialize_message, serialize_message
from rosidl_parser.definition import AbstractSequence, BasicType
from sensor_msgs.msg import JointState


def copy_sequences(monkeypatch):
    """Let messages keep copies of sequences that they are given, as those of Lyrical do."""
    def copying(own):
        def keep(message, value):
            assert not isinstance(value, (set, frozenset))      # deprecated there
            own.fset(message, list(value))
        return own.setter(keep)
    kinds = [kind for name, module in list(sys.modules.items()) if '.msg._' in name
             for kind in vars(module).values() if hasattr(kind, 'SLOT_TYPES')]
    for kind in kinds:
        for name, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES):
            if isinstance(slot, AbstractSequence) and not isinstance(slot.value_type, BasicType):
                monkeypatch.setattr(kind, name, copying(getattr(kind, name)))
    names = ['a']
    message = JointState(name=names)
    names.append('b')
    assert message.name == ['a']


@pytest.fixture(params=['this machine', 'Lyrical', 'no shortcuts', 'the other way round'])
def deserialize(request, monkeypatch, caplog):
    """Serialize as this middleware does, or as another would, and return what reads it."""
    if request.param == 'Lyrical':
        copy_sequences(monkeypatch)
    if request.param == 'no shortcuts':
        monkeypatch.setattr(cdr, 'SHORTCUTS', False)
    if request.param != 'the other way round':
        yield deserialize_message
        assert not caplog.get_records('call')
        return
    monkeypatch.setattr(serialization, 'serialize_message',
                        lambda message: bytes(serialize_message(message))[::-1])
    monkeypatch.setattr(serialization, 'deserialize_message',
                        lambda raw, kind: deserialize_message(raw[::-1], kind))
    yield serialization.deserialize_message
    assert any('one by one' in record.message for record in caplog.get_records('call'))
