"""Forms of fields follow from their types, and the bytes of a message never change in a version."""

import itertools
import types
import typing
from dataclasses import dataclass, fields, is_dataclass
from enum import IntEnum
from hashlib import sha256

import pytest

from tightship.driver.protocol import messages, replies
from tightship.driver.protocol.codec import VERSION, encode
from tightship.driver.protocol.snapshot_form import encode_snapshot
from tightship.driver.protocol.wire import FORMS, I32, I64, Reader, record
from tightship.driver.types.snapshot import Snapshot

ENCODED = "adda181ad79346d37ecbc0bd2d4ba50b"
"""Hash of a sample of every message and of a snapshot, in version 1."""


def sample(kind: typing.Any, numbers: typing.Iterator[int]) -> typing.Any:
    """A value of a type, with other numbers in every field."""
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return sample(arguments[0], numbers)
    if typing.get_origin(kind) is tuple:
        return tuple(sample(arguments[0], numbers) for _ in range(2))
    if is_dataclass(kind):
        return kind(*[sample(field.type, numbers) for field in fields(kind)])
    number = next(numbers)
    if issubclass(kind, IntEnum):
        return kind(number % len(kind))
    plain = {bool: number % 2 == 0, float: number / 8, int: number, str: f"n{number}"}
    return plain.get(kind, bytes([number % 256]) * 32)


def test_messages_have_the_bytes_of_their_version():
    assert VERSION == 1
    numbers, found = itertools.count(1), sha256()
    for kind in (*typing.get_args(messages.Call), *typing.get_args(replies.Reply)):
        found.update(encode(sample(kind, numbers), next(numbers)))
    found.update(encode_snapshot(sample(Snapshot, numbers)))
    assert found.hexdigest()[:32] == ENCODED


@dataclass(frozen=True)
class Pair:
    first: int
    second: int
    third: bool = False


def test_a_field_has_the_form_of_its_type_unless_another_is_given():
    form = record(Pair, second=I32)
    out = bytearray()
    form.write(Pair(1, 2, True), out)
    assert len(out) == 8 + 4 + 1
    assert form.read(Reader(bytes(out))) == Pair(1, 2, True)
    assert FORMS.pop(Pair) is form


def test_a_form_of_no_field_or_a_type_without_form_is_a_mistake():
    with pytest.raises(AssertionError, match="Pair"):
        record(Pair, fourth=I64)

    @dataclass(frozen=True)
    class Complex:
        value: complex

    with pytest.raises(KeyError, match="complex"):
        record(Complex)
