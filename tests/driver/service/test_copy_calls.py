"""Copies from buffer to buffer (R82): a test for each thing that the rule says."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, SHAPE, TYPES, Client, add, conv, shaped
from tightship.driver.protocol.messages import CopyBetween, CopyFrom, CopyTo, DescribeBuffer, Free
from tightship.driver.service import effects as fx
from tightship.driver.service import events as ev
from tightship.driver.types.quota import Resource
from tightship.driver.types.settings import CONNECTION_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus

TRANSIENT = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
DYNAMIC = (0, 32, 32, 8)
KIND = TYPES["float32"]
SIZE = KIND.size_bytes


@pytest.fixture
def client():
    return Client()


def buffer_of(client, value_type=KIND):
    return client.buffer((client.model(conv(value_type)),), inputs=(0,), outputs=(0,))


def filled(client, value_type=KIND):
    token = buffer_of(client, value_type)
    client.initialise(token, value_type.size_bytes)
    return token


def is_empty(client, token):
    return client.status(DescribeBuffer(token)) is GF


def replies_to(client, *messages):
    """Statuses of calls that are all under way at once."""
    posted = [client.server.post(client.number, message) for message in messages]
    client.server.answer_all()
    replies = [client.server.replies[client.number, number] for number in posted]
    return [getattr(reply, "status", NONE) for reply in replies]


@pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES.keys())
def test_the_destination_holds_a_value_afterwards(client, kind):
    source, target = filled(client, kind), buffer_of(client, kind)
    assert client.status(CopyBetween(target, source)) is NONE
    assert client.status(CopyTo(target, client.pool(kind.size_bytes))) is NONE


def test_the_destination_has_the_dimensions_of_the_source(client):
    source, target = filled(client), buffer_of(client, shaped(KIND, *DYNAMIC))
    client.initialise(target, 2 * SIZE, (2, 32, 32, 8))
    assert client.status(CopyBetween(target, source)) is NONE
    assert client(DescribeBuffer(target)).dimensions == SHAPE
    assert client.status(CopyTo(target, client.pool(SIZE))) is NONE


def test_dimensions_that_contradict_are_refused_and_empty_the_destination(client):
    source, target = buffer_of(client, shaped(KIND, *DYNAMIC)), filled(client)
    client.initialise(source, 2 * SIZE, (2, 32, 32, 8))
    assert client.status(CopyBetween(target, source)) is IA
    assert is_empty(client, target)
    assert client(DescribeBuffer(source)).dimensions == (2, 32, 32, 8)


@pytest.mark.parametrize("other", ["float16", "quant8_asymm"])
def test_other_types_are_refused_and_empty_the_destination(client, other):
    target = filled(client)
    assert client.status(CopyBetween(target, filled(client, TYPES[other]))) is IA
    assert is_empty(client, target)


def test_a_buffer_copied_into_itself_stays_as_it_is(client):
    full, empty = filled(client), buffer_of(client)
    assert [client.status(CopyBetween(each, each)) for each in (full, empty)] == [NONE, NONE]
    assert not is_empty(client, full)
    assert is_empty(client, empty)


def test_a_source_that_holds_nothing_fails_and_empties_the_destination(client):
    target = filled(client)
    assert client.status(CopyBetween(target, buffer_of(client))) is GF
    assert is_empty(client, target)


def test_dimensions_are_checked_before_the_state(client):
    other = buffer_of(client, shaped(KIND, 2, 32, 32, 8))
    assert client.status(CopyBetween(filled(client), other)) is IA


def test_a_copy_that_the_server_cannot_do_empties_the_destination_alone(client):
    source, target = filled(client), filled(client)
    client.server.engine.status = TRANSIENT
    assert client.status(CopyBetween(target, source)) is TRANSIENT
    assert is_empty(client, target)
    assert not is_empty(client, source)


def test_unknown_tokens_are_refused(client):
    target = filled(client)
    stranger = Client(client.server)
    theirs = filled(stranger)
    assert client.status(CopyBetween(theirs, target)) is IA
    assert not is_empty(client, target)
    assert client.status(CopyBetween(target, theirs)) is IA
    assert is_empty(client, target)
    assert not is_empty(stranger, theirs)
    assert client.status(DescribeBuffer(theirs)) is IA


def test_scalars_are_copied(client):
    model = client.model(add(KIND))
    source, target = (client.buffer((model,), inputs=(2,)) for _ in range(2))
    client.initialise(source, 4)
    assert client.status(CopyBetween(target, source)) is NONE
    assert client(DescribeBuffer(target)).dimensions == ()


def test_a_source_may_be_read_by_several_and_not_be_written(client):
    source, one, two = filled(client), buffer_of(client), buffer_of(client)
    pool = client.pool(SIZE)
    calls = CopyBetween(one, source), CopyBetween(two, source), CopyTo(source, pool)
    assert replies_to(client, *calls, CopyFrom(source, pool)) == [NONE, NONE, NONE, GF]


def test_a_destination_in_use_is_not_written_and_its_source_is_free_again(client):
    source, target = filled(client), filled(client)
    assert replies_to(client, CopyTo(target, client.pool(SIZE)), CopyBetween(target, source)) == [
        NONE,
        GF,
    ]
    assert client.status(CopyFrom(source, client.pool(SIZE))) is NONE
    assert client.status(CopyBetween(target, source)) is NONE


def test_freeing_both_lets_a_copy_end(client):
    tokens = source, target = filled(client), buffer_of(client)
    number = client.server.post(client.number, CopyBetween(target, source))
    for each in tokens:
        client.server.post(client.number, Free(each))
    assert client.server.buffers == set(tokens)
    client.server.answer_all()
    assert (client.number, number) in client.server.replies
    assert not client.server.buffers
    client.server.happen(ev.Disconnected(client.number))
    assert client.server.is_clean()


def test_a_destination_that_grows_is_charged_for_it():
    limits = dict(CONNECTION_LIMITS) | {Resource.BUFFER_BYTES: 2 * SIZE}
    client = Client(FakeServer(Settings(connection_limits=limits)))
    one, two, three = (buffer_of(client, shaped(KIND, *DYNAMIC)) for _ in range(3))
    client.initialise(one, SIZE, SHAPE)
    assert client.status(CopyBetween(two, one)) is NONE
    assert client.status(CopyBetween(three, one)) is TRANSIENT
    client(Free(two))
    assert client.status(CopyBetween(three, one)) is NONE


def test_the_server_gets_both_buffers_and_no_pool(client):
    source, target = filled(client), buffer_of(client)
    client.server.post(client.number, CopyBetween(target, source))
    (asked,) = client.server.asked
    assert asked == fx.CopyBuffers(asked.copy, target, source, SHAPE)


def test_a_driver_without_the_feature_refuses():
    client = Client(FakeServer(Settings(features=frozenset({"memory_domains"}))))
    target = filled(client)
    assert client.status(CopyBetween(target, filled(client))) is GF
