"""Numbers that no message has a place for: INVALID_ARGUMENT with the field, from the client too."""

import dataclasses
import os
import types
import typing

import numpy as np
import pytest

from tests.driver.strategies import CALL_CLASSES
from tightship.driver import Image, ModelBuilder, PoolMode, tensor_type
from tightship.driver.memory import descriptor
from tightship.driver.protocol.codec import decode_call, encode
from tightship.driver.protocol.messages import CopyFrom, RegisterPool
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError

PLAIN = {bool: False, float: 0.5, str: "a", bytes: bytes(32)}
FAR = (2**63, -(2**63) - 1, 2**64, 10**400)


def made(hint):
    """A value of a type whose rows have one entry each, and each option is there."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return made(inner[0])
    if origin is tuple:
        return (made(inner[0]),)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        return hint(*[made(hints[each.name]) for each in dataclasses.fields(hint)])
    return PLAIN.get(hint, 1)


def with_number(value, number):
    """Copies of a value, each with another of its integers replaced, and the name of that."""
    for field in dataclasses.fields(value):
        found = getattr(value, field.name)
        entry = found[0] if isinstance(found, tuple) else found
        if dataclasses.is_dataclass(entry):
            changed = list(with_number(entry, number))
        elif isinstance(entry, int) and not isinstance(entry, bool):
            changed = [(number, f"{type(value).__name__}.{field.name}")]
        else:
            continue
        for other, name in changed:
            put = (other,) if isinstance(found, tuple) else other
            yield dataclasses.replace(value, **{field.name: put}), name


@pytest.mark.parametrize("kind", CALL_CLASSES, ids=lambda kind: kind.__name__)
def test_every_integer_of_a_call_is_refused_by_its_name(kind):
    call = made(kind)
    assert decode_call(encode(call, 1)).message == call
    for number in FAR:
        for changed, name in with_number(call, number):
            with pytest.raises(DriverError, match=f"`{name}` is ") as caught:
                encode(changed, 1)
            assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
            assert "; it must be a whole number from -" in str(caught.value)


def test_most_calls_have_integers():
    counts = {kind.__name__: len(list(with_number(made(kind), 0))) for kind in CALL_CLASSES}
    assert {name for name, count in counts.items() if not count} == {"Capabilities"}
    assert sum(counts.values()) > 100


@pytest.mark.parametrize("number", ["1", 1.5, None])
def test_what_is_not_a_number_is_refused_as_well(number):
    with pytest.raises(DriverError, match=r"`CopyFrom\.token` is .*; it must be a whole number"):
        encode(CopyFrom(number, 1), 1)


def sum_of(kind, operation=19, index=None):
    builder = ModelBuilder()
    x = builder.input(kind)
    builder.operation(operation, [x if index is None else index], [builder.output(kind)])
    return builder


KIND = tensor_type("f4", (4,))
CALLS = {
    "a mode": lambda client, file, n: client.file_pool(file, n),
    "an image": lambda client, file, n: client.image_pool(file, Image(n, 1, 1, 64)),
    "a stride": lambda client, file, n: client.image_pool(file, Image(1, 1, 1, n)),
    "a dimension": lambda client, _, n: client.prepare(sum_of(tensor_type("f4", (n,)))),
    "a type": lambda client, _, n: client.prepare(sum_of(ValueType(n, (4,)))),
    "an operation": lambda client, _, n: client.supported_operations(sum_of(KIND, n)),
    "an operand": lambda client, _, n: client.supported_operations(sum_of(KIND, 19, n)),
    "a priority": lambda client, _, n: client.prepare(sum_of(KIND), priority=n),
    "a preference": lambda client, _, n: client.prepare(sum_of(KIND), preference=n),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_client_gets_an_error_and_its_connection_goes_on(served, call):
    file = os.memfd_create("wide")
    os.ftruncate(file, 4096)
    try:
        with served.client() as client:
            for number in FAR:
                with pytest.raises(DriverError) as caught:
                    call(client, file, number)
                assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
                assert client.capabilities().feature_level
    finally:
        os.close(file)


def test_a_deadline_in_the_far_future_is_one(served):
    """The kernel takes no wait of more than 24 days, for which the driver must not end."""
    x = np.array([-1, 0, 1, 2], np.float32)
    with served.client() as client, client.prepare(sum_of(KIND), timeout_s=2.0**32) as model:
        for seconds in (2.0**22, 2.0**31, 2.0**32, 9e9):
            with model.execute_fenced([x], timeout_s=seconds) as first:
                waiting = model.execute_fenced([x], wait_for=[first.fence], timeout_s=seconds)
                with waiting:
                    assert np.array_equal(waiting.wait(seconds)[0], np.maximum(x, 0))
            assert np.array_equal(model.execute([x], timeout_s=seconds)[0], np.maximum(x, 0))
        for seconds in (1e30, 2.0**63):
            with pytest.raises(DriverError) as caught:
                model.execute([x], timeout_s=seconds)
            assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
    with served.client() as client:
        assert client.capabilities().feature_level
    assert served.process.poll() is None


def test_memory_that_there_is_not_is_not_asked_for(served, monkeypatch):
    with served.client() as client:
        for size_bytes in (2**63, 2**64, 0, -1):
            for ask in (client.segment, client.blob):
                with pytest.raises(InputError, match=r"`size_bytes`.*(more memory|at least)"):
                    ask(size_bytes)
    monkeypatch.setattr(descriptor, "available_bytes", lambda: descriptor.LARGE_BYTES)
    monkeypatch.setattr(os, "posix_fallocate", lambda *_: None)
    with pytest.raises(OSError, match="Cannot allocate memory"):
        descriptor.new_segment(descriptor.LARGE_BYTES + 1)
    os.close(descriptor.new_segment(descriptor.LARGE_BYTES))


def test_a_mode_is_one_that_a_client_may_ask_for(served):
    assert [mode.name for mode in PoolMode] == ["SEALED", "COPY", "ISOLATED"]
    with served.client() as client:
        assert ("isolated" in client.capabilities().features) is True
        file = os.memfd_create("mode")
        os.ftruncate(file, 4096)
        with pytest.raises(DriverError, match="mode 3; modes are 0 to 2"):
            client.file_pool(file, 3)
        os.close(file)


def test_a_call_that_is_whole_is_written():
    assert encode(RegisterPool("mmap_fd", 2**63 - 1, 1, 0), 1)
