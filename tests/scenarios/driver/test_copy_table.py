"""Table 2.2: copies into and out of buffers; 7 rows for each of 4 types."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, SHAPE, TYPES, Client, add, conv, shaped
from tightship.driver.protocol.messages import CopyFrom, CopyTo, Free
from tightship.driver.types.quota import Resource
from tightship.driver.types.settings import CONNECTION_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus

TRANSIENT = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
EXACT = SHAPE
DYNAMIC = (0, 32, 32, 8)


@pytest.fixture
def client():
    return Client()


@pytest.fixture(params=TYPES.values(), ids=TYPES.keys())
def kind(request):
    return request.param


def buffer_of(client, value_type):
    return client.buffer((client.model(conv(value_type)),), inputs=(0,), outputs=(0,))


def copy_from(client, token, size_bytes, *dimensions):
    return client.status(CopyFrom(token, client.pool(size_bytes), dimensions))


def copy_to(client, token, size_bytes):
    return client.status(CopyTo(token, client.pool(size_bytes)))


def test_c1_from_a_pool_of_another_size(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    assert copy_from(client, token, size // 2) is IA
    assert copy_from(client, token, size * 2) is IA


def test_c2_from_a_pool_of_another_size_with_a_dynamic_shape(client, kind):
    token, size = buffer_of(client, shaped(kind, *DYNAMIC)), kind.size_bytes
    assert copy_from(client, token, size // 2, *EXACT) is IA
    assert copy_from(client, token, size * 2, *EXACT) is IA
    assert copy_from(client, token, size, *EXACT) is NONE
    assert copy_from(client, token, size, 2, 32, 32, 8) is IA


def test_c3_from_other_dimensions(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    for wrong in (SHAPE[:3], (2, 32, 32, 8), DYNAMIC):
        assert copy_from(client, token, size, *wrong) is IA
    assert copy_from(client, token, size) is NONE
    assert copy_from(client, token, size, *EXACT) is NONE


def test_c4_from_other_dimensions_with_a_dynamic_shape(client, kind):
    token, size = buffer_of(client, shaped(kind, *DYNAMIC)), kind.size_bytes
    for wrong in (SHAPE[:3], (1, 32, 32, 4), (1, 32, 32, 0), ()):
        assert copy_from(client, token, size, *wrong) is IA
    assert copy_from(client, token, size, *EXACT) is NONE


def test_c5_to_a_pool_while_it_holds_nothing(client, kind):
    assert copy_to(client, buffer_of(client, kind), kind.size_bytes) is GF


def test_c6_to_a_pool_of_another_size(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    assert copy_to(client, token, size // 2) is IA
    assert copy_to(client, token, size * 2) is IA
    assert copy_to(client, token, size) is NONE


def test_c7_to_a_pool_of_another_size_with_a_dynamic_shape(client, kind):
    token, size = buffer_of(client, shaped(kind, *DYNAMIC)), kind.size_bytes
    client.initialise(token, size, EXACT)
    assert copy_to(client, token, size // 2) is IA
    assert copy_to(client, token, size * 2) is IA
    assert copy_to(client, token, size) is NONE


def test_c8_a_failed_copy_from_empties_the_buffer(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    assert copy_from(client, token, size // 2) is IA
    assert copy_to(client, token, size) is GF


def test_c8_a_copy_that_the_server_cannot_do_empties_the_buffer(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    client.server.engine.status = IA
    assert copy_from(client, token, size) is IA
    client.server.engine.status = NONE
    assert copy_to(client, token, size) is GF


def test_c8_a_failed_copy_to_leaves_the_buffer(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    client.server.engine.status = GF
    assert copy_to(client, token, size) is GF
    client.server.engine.status = NONE
    assert copy_to(client, token, size) is NONE


def test_c8_the_size_is_checked_before_the_state(client, kind):
    assert copy_to(client, buffer_of(client, kind), kind.size_bytes // 2) is IA


def test_c8_a_dynamic_buffer_that_was_emptied_has_no_size(client, kind):
    token, size = buffer_of(client, shaped(kind, *DYNAMIC)), kind.size_bytes
    client.initialise(token, size, EXACT)
    assert copy_from(client, token, size, 2, 32, 32, 8) is IA
    assert copy_to(client, token, 2 * size) is GF


def test_c8_a_scalar_is_copied_without_dimensions(client, kind):
    token = client.buffer((client.model(add(kind)),), inputs=(2,))
    assert copy_from(client, token, 4, 1) is IA
    assert copy_from(client, token, 4) is NONE


@pytest.mark.parametrize("protection", [0, 1])
def test_c8_a_pool_that_may_not_be_written_is_no_destination(client, kind, protection):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    pool = client.pool(size, protection, "mmap_fd", offset_bytes=4096)
    assert client.status(CopyTo(token, pool)) is IA
    assert client.status(CopyFrom(token, pool)) is (NONE if protection else IA)


def test_c8_a_pool_of_no_known_kind_is_refused_as_an_argument(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    pool = client.pool(size, kind="a kind to come")
    assert client.status(CopyTo(token, pool)) is IA
    assert client.status(CopyFrom(token, pool)) is IA
    assert client.status(CopyTo(token, pool + 1)) is IA
    assert client.status(CopyTo(token + 1, pool)) is IA


def test_c8_two_may_read_and_a_third_may_not_write(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    client.initialise(token, size)
    pool = client.pool(size)
    posted = [
        client.server.post(client.number, message)
        for message in (CopyTo(token, pool), CopyTo(token, pool), CopyFrom(token, pool))
    ]
    client.server.answer_all()
    replies = [client.server.replies[client.number, number] for number in posted]
    assert [getattr(reply, "status", NONE) for reply in replies] == [NONE, NONE, GF]


def test_c8_freeing_a_buffer_lets_a_copy_end(client, kind):
    token, size = buffer_of(client, kind), kind.size_bytes
    number = client.server.post(client.number, CopyFrom(token, client.pool(size)))
    client.server.post(client.number, Free(token))
    assert token in client.server.buffers
    client.server.answer_all()
    assert (client.number, number) in client.server.replies
    assert token not in client.server.buffers


def test_a_buffer_that_grows_is_charged_for_it():
    kind = TYPES["float32"]
    limits = dict(CONNECTION_LIMITS) | {Resource.BUFFER_BYTES: 2 * kind.size_bytes}
    client = Client(FakeServer(Settings(connection_limits=limits)))
    one, other = (buffer_of(client, shaped(kind, *DYNAMIC)) for _ in range(2))
    client.initialise(one, 2 * kind.size_bytes, (2, 32, 32, 8))
    assert copy_from(client, other, kind.size_bytes, *EXACT) is TRANSIENT
    client(Free(one))
    assert copy_from(client, other, kind.size_bytes, *EXACT) is NONE
