import itertools
import math
import random
import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver.strategies import (
    CALL_CLASSES,
    REPLY_CLASSES,
    answers,
    calls,
    numbers,
)
from tightship.driver.protocol import codec, messages
from tightship.driver.protocol.codec import (
    HEADER_BYTES,
    MESSAGE_BYTES_MAX,
    Frame,
    decode_call,
    decode_model,
    decode_reply,
    encode,
    encode_model,
    encode_reply,
    number_of,
)
from tightship.driver.protocol.messages import Allocate, Execute, Free, Prepare, Role
from tightship.driver.protocol.replies import Done, Executed, Failed, ModelPrepared, OutputShape
from tightship.driver.types.model import DataLocation, Model, Subgraph
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import FormatError

ARGUMENT = RequestArgument(DataLocation(0, 64, 128, 64), (1, 0, 3))
EXECUTE = Execute(
    7, Request((ARGUMENT,) * 2, (ARGUMENT,), (RequestPool(5), RequestPool(9, is_token=True)))
)


@given(calls, numbers, st.integers(0, 253))
def test_a_call_that_is_written_is_read(message, number, file_count):
    data = encode(message, number, file_count)
    assert decode_call(data) == Frame(message, number, file_count)
    assert number_of(data) == number


@given(answers, numbers)
def test_an_answer_that_is_written_is_read(message, number):
    assert decode_reply(encode(message, number)) == Frame(message, number)


@pytest.mark.parametrize("kind", [*CALL_CLASSES, *REPLY_CLASSES], ids=lambda kind: kind.__name__)
def test_every_message_has_a_form(kind):
    assert kind in codec._TAGS


def read_or_refuse(data: bytes) -> None:
    """Bytes are the one encoding of a message, or are refused as a format error."""
    for decode in (decode_call, decode_reply):
        try:
            frame = decode(data)
        except FormatError:
            continue
        assert encode(frame.message, frame.number, frame.file_count) == data


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_refused(data):
    read_or_refuse(data)


@given(st.sampled_from(sorted(codec._TAGS.values())), st.binary(max_size=300))
def test_any_body_is_a_message_or_refused(tag, body):
    read_or_refuse(codec._HEADER.pack(codec.VERSION, tag, 0, len(body), 1) + body)


@settings(max_examples=200)
@given(calls, st.data())
def test_a_flipped_bit_gives_a_message_or_is_refused(message, data):
    raw = bytearray(encode(message, 3))
    bit = data.draw(st.integers(0, 8 * len(raw) - 1))
    raw[bit // 8] ^= 1 << bit % 8
    read_or_refuse(bytes(raw))


@given(calls)
def test_a_message_cut_short_or_made_longer_is_refused(message):
    data = encode(message, 3)
    for wrong in (data + b"\0", *itertools.islice((data[:n] for n in range(len(data))), 40)):
        with pytest.raises(FormatError):
            decode_call(wrong)


def test_each_byte_of_an_execution_may_be_anything():
    data = encode(EXECUTE, 3)
    for position, value in itertools.product(range(len(data)), (0, 1, 127, 255)):
        read_or_refuse(data[:position] + bytes([value]) + data[position + 1 :])


@pytest.mark.slow
def test_a_hundred_thousand_broken_messages_are_read_or_refused():
    rng = random.Random(8)
    seeds = [encode(EXECUTE, 1), encode(Allocate((0,), (3,), (Role(0, 0),), ()), 2)]
    for _ in range(100_000):
        raw = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 6)):
            raw[rng.randrange(len(raw))] = rng.randrange(256)
        del raw[rng.choice((len(raw), rng.randrange(len(raw)))) :]
        read_or_refuse(bytes(raw))


def test_a_count_that_lies_costs_no_memory():
    body = struct.pack("<I", 2**32 - 1)
    data = codec._HEADER.pack(codec.VERSION, codec._TAGS[Allocate], 0, len(body), 1) + body
    with pytest.raises(FormatError, match="4294967295 entries; at most 64"):
        decode_call(data)


def test_another_version_is_refused():
    with pytest.raises(FormatError, match="has version 2, not 1"):
        decode_call(b"\2" + encode(Free(1), 1)[1:])


def test_an_answer_is_not_a_call():
    with pytest.raises(FormatError, match="kind 128"):
        decode_call(encode(Done(), 1))


def test_more_files_than_the_kernel_passes_are_refused():
    with pytest.raises(FormatError, match="254 files; at most 253"):
        decode_call(encode(Free(1), 1, 254))


def test_a_message_too_long_to_send_names_the_way_out():
    empty = Subgraph((), (), (), ())
    with pytest.raises(FormatError, match=r"at most 65536\. Pass a large model in a pool"):
        encode(Prepare(Model(empty, operand_values=bytes(MESSAGE_BYTES_MAX))), 1)


def test_half_a_character_is_refused():
    with pytest.raises(FormatError, match="unpaired surrogate"):
        encode(Failed(ErrorStatus.GENERAL_FAILURE, "\ud800"), 1)


@given(st.from_type(Model))
def test_a_model_that_is_written_is_read(model):
    assert decode_model(encode_model(model)) == model


def test_a_model_with_its_weights_inside_is_refused():
    with pytest.raises(FormatError, match="Put its constants into a pool"):
        decode_model(bytes(codec.MODEL_BYTES_MAX + 1))


def test_q6_an_answer_that_does_not_fit_becomes_a_failure_without_shapes():
    answer = Executed(ErrorStatus.NONE, (OutputShape((1,) * 60),))
    whole = encode(answer, 9)
    assert encode_reply(answer, 9, len(whole)) == whole
    short = decode_reply(encode_reply(answer, 9, len(whole) - 1))
    assert short.message == Failed(ErrorStatus.GENERAL_FAILURE, "The answer is too long.")
    assert short.number == 9


def test_a_long_failure_keeps_its_status_and_the_begin_of_its_message():
    long = Failed(ErrorStatus.INVALID_ARGUMENT, "ü" * 1000)
    assert decode_reply(encode_reply(long, 3)).message == Failed(long.status, "ü" * 512)


def test_q7_no_byte_of_an_answer_is_padding():
    """Each says something, so none can be what was in memory before."""
    shapes = OutputShape((1, 32)), OutputShape((7,), is_sufficient=False)
    data = encode_reply(Executed(ErrorStatus.OUTPUT_INSUFFICIENT_SIZE, shapes), 9)
    whole = decode_reply(data)
    for position, bit in itertools.product(range(len(data)), range(8)):
        changed = bytes([data[position] ^ 1 << bit])
        with suppress(FormatError):
            assert decode_reply(data[:position] + changed + data[position + 1 :]) != whole


def test_an_answer_too_large_for_any_message_becomes_a_failure():
    types = (ValueType(3, (1,) * 64),) * 4096
    answer = ModelPrepared(1, types, ())
    assert isinstance(decode_reply(encode_reply(answer, 1)).message, Failed)


def test_a_request_that_comes_again_is_read_once():
    first, second = (decode_call(encode(EXECUTE, n)).message for n in (1, 2))
    assert first.request is second.request


def test_a_number_that_is_none_keeps_its_bits():
    data = encode(Allocate((), (3,), (Role(0, 0, math.nan),), ()), 1)
    assert encode(decode_call(data).message, 1) == data


def test_the_header_is_sixteen_bytes():
    assert HEADER_BYTES == 16
    assert len(encode(messages.Capabilities(), 1)) == HEADER_BYTES
