"""Files that may become pools, and where an unusable one fails."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, TYPES, Client, Places, conv, run
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.model import DataLocation
from tightship.driver.types.pools import Image
from tightship.driver.types.quota import Resource
from tightship.driver.types.request import RequestArgument, RequestPool
from tightship.driver.types.settings import CONNECTION_LIMITS, USER_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus

TRANSIENT = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
PERSISTENT = ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT
KIND = TYPES["float32"]
SIZE = KIND.size_bytes
PAGE = 4096


@pytest.fixture
def client():
    return Client()


def register(client, size_bytes=PAGE, kind="ashmem", protection=3, file_bytes=2 * PAGE, **fields):
    facts = fields.pop("facts", {})
    file = client.server.file(file_bytes, **facts)
    message = m.RegisterPool(kind, size_bytes, protection, fields.pop("file", 0), **fields)
    reply = client(message, file)
    is_open = file.handle in client.server.open_files
    assert is_open == isinstance(reply, PoolRegistered)
    return NONE if is_open else reply.status


BLOB, IMAGE = "hardware_buffer_blob", "hardware_buffer"
GOOD = {
    "sealed memory": {},
    "memory as large as the file": {"size_bytes": 2 * PAGE},
    "memory without protection": {"protection": 0},
    "memory to read": {"protection": 1, "facts": {"is_writable": False}},
    "the second page of a file": {"kind": "mmap_fd", "offset_bytes": PAGE},
    "a file that is copied": {"kind": "mmap_fd", "mode": 1, "facts": {"is_shrink_sealed": False}},
    "a file of the driver": {
        "kind": "mmap_fd",
        "protection": 1,
        "facts": {"is_shrink_sealed": False, "is_trusted": True},
    },
    "a blob": {"kind": BLOB, "image": Image(PAGE, 1, 1, PAGE)},
    "an image": {"kind": IMAGE, "image": Image(16, 16, 1, 256)},
    "a dma-buf": {"kind": BLOB, "image": Image(PAGE, 1, 1, PAGE), "facts": {"is_dma_buf": True}},
    "an image in a dma-buf": {
        "kind": IMAGE,
        "image": Image(16, 16, 1, 256),
        "facts": {"is_dma_buf": True},
    },
    "anything": {"kind": "a kind to come"},
}
BAD = {
    "no bytes": {"size_bytes": 0},
    "less than no bytes": {"size_bytes": -1},
    "more bytes than the file": {"size_bytes": 2 * PAGE + 1},
    "more bytes than there are": {"size_bytes": 2**63 - 1},
    "the right to execute": {"protection": 4},
    "a protection below zero": {"protection": -1},
    "an offset within a page": {"kind": "mmap_fd", "offset_bytes": 1},
    "an offset of half a page": {"kind": "mmap_fd", "offset_bytes": PAGE // 2},
    "an offset below zero": {"kind": "mmap_fd", "offset_bytes": -PAGE},
    "an offset past the file": {"kind": "mmap_fd", "offset_bytes": 2 * PAGE},
    "an offset that wraps": {"kind": "mmap_fd", "offset_bytes": 2**63 - PAGE},
    "sealed memory with an offset": {"offset_bytes": PAGE},
    "a file that is none": {"facts": {"is_regular": False}},
    "a file that cannot be read": {"facts": {"is_readable": False}},
    "a file that cannot be written": {"facts": {"is_writable": False}},
    "a file that is sealed against writing": {"facts": {"is_write_sealed": True}},
    "memory that may shrink": {"facts": {"is_shrink_sealed": False}},
    "memory that may shrink though its folder is ours": {
        "facts": {"is_shrink_sealed": False, "is_trusted": True}
    },
    "a file of the driver to write": {
        "kind": "mmap_fd",
        "facts": {"is_shrink_sealed": False, "is_trusted": True},
    },
    "a dma-buf as a file": {"kind": "mmap_fd", "facts": {"is_dma_buf": True}},
    "a dma-buf as memory": {"facts": {"is_dma_buf": True}},
    "a dma-buf smaller than the pool": {
        "kind": BLOB,
        "image": Image(2 * PAGE + 1, 1, 1, 2 * PAGE + 1),
        "size_bytes": 2 * PAGE + 1,
        "facts": {"is_dma_buf": True},
    },
    "a file that may shrink": {"kind": "mmap_fd", "facts": {"is_shrink_sealed": False}},
    "a mode too many": {"mode": 3},
    "a mode below zero": {"mode": -1},
    "a file beside none": {"file": 1},
    "no file": {"file": -1},
    "a description of memory as a buffer": {"image": Image(PAGE, 1, 1, PAGE)},
    "a blob without a description": {"kind": BLOB},
    "a blob of another width": {"kind": BLOB, "image": Image(PAGE - 1, 1, 1, PAGE)},
    "a blob of two rows": {"kind": BLOB, "image": Image(PAGE, 2, 1, 1)},
    "a blob of two layers": {"kind": BLOB, "image": Image(PAGE, 1, 2, 1)},
    "a blob whose rows are further apart": {"kind": BLOB, "image": Image(PAGE, 1, 1, PAGE + 1)},
    "an image without a description": {"kind": IMAGE},
    "an image without pixels": {"kind": IMAGE, "image": Image(0, 16, 1, 256)},
    "rows that lie in each other": {"kind": IMAGE, "image": Image(16, 16, 1, 63)},
    "an image larger than the pool": {"kind": IMAGE, "image": Image(16, 17, 1, 256)},
}


@pytest.mark.parametrize("fields", GOOD.values(), ids=GOOD.keys())
def test_taken(client, fields):
    assert register(client, **fields) is NONE


@pytest.mark.parametrize("fields", BAD.values(), ids=BAD.keys())
def test_refused(client, fields):
    assert register(client, **fields) is IA


def test_isolated_workers_are_a_feature(client):
    assert register(client, mode=2) is GF
    settings = Settings(features=frozenset({"isolated"}))
    assert register(Client(FakeServer(settings)), mode=2) is NONE


def test_a_pool_is_mapped_at_once_if_the_client_asks(client):
    assert register(client, must_map=True) is NONE
    client.server.engine.unmappable.add(client.server.counts["files"] + 1)
    assert register(client, must_map=True) is IA
    assert register(client, must_map=True, kind="a kind to come") is IA


UNUSABLE = {
    "a kind that is not known": {"kind": "a kind to come"},
    "an image": {"kind": IMAGE, "image": Image(8, 1, 1, 1 << 20)},
    "no protection": {"protection": 0},
}


@pytest.mark.parametrize("fields", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_execution_fails_with_a_pool_that_cannot_be_used(client, fields):
    model = client.model(conv(KIND))
    places = Places(client.pool(**fields))
    size = 0 if "image" in fields else SIZE
    arguments = [places.pooled(size)]
    places.offset_bytes += size
    other = Places(client.pool())
    places.pools += other.pools
    beside = [RequestArgument(DataLocation(1, 0, SIZE))]
    for inputs, outputs in ((arguments, beside), (beside, arguments)):
        assert run(client, model, places.request(inputs, outputs)) is GF


def test_an_image_is_used_whole_where_the_driver_has_them():
    client = Client(FakeServer(Settings(features=frozenset({IMAGE, "memory_domains"}))))
    model = client.model(conv(KIND))
    pool = client.pool(kind=IMAGE, image=Image(32, 32, 8, 160))
    places, other = Places(pool), Places(client.pool())
    whole = places.pooled(0)
    part = places.pooled(SIZE)
    places.pools += other.pools
    beside = RequestArgument(DataLocation(1, 0, SIZE))
    assert run(client, model, places.request([whole], [beside])) is NONE
    assert run(client, model, places.request([part], [beside])) is IA
    assert run(client, model, places.request([whole], [whole])) is IA
    places.pools[0] = RequestPool(client.pool(kind=IMAGE, image=Image(32, 32, 7, 160)))
    assert run(client, model, places.request([whole], [beside])) is IA


def test_an_image_of_pixels_that_are_not_known_cannot_be_used():
    client = Client(FakeServer(Settings(features=frozenset({IMAGE, "memory_domains"}))))
    model = client.model(conv(KIND))
    token = client.buffer([model], [0], [0])
    image = client.pool(kind=IMAGE, image=Image(32, 32, 8, 160, 0x23))
    places = Places(image)
    request = places.request([RequestArgument(DataLocation(0))], [places.buffer(token)])
    assert run(client, model, request) is GF
    assert client.status(m.CopyFrom(token, image)) is IA


@pytest.mark.parametrize(("height", "expected"), [(32, NONE), (31, IA), (33, IA)])
def test_a_buffer_is_copied_from_and_to_an_image_of_its_size(height, expected):
    client = Client(FakeServer(Settings(features=frozenset({IMAGE, "memory_domains"}))))
    token = client.buffer([client.model(conv(KIND))], [0])
    client.initialise(token, SIZE)
    image = client.pool(kind=IMAGE, image=Image(32, height, 8, 160))
    assert client.status(m.CopyFrom(token, image)) is expected
    client.initialise(token, SIZE)
    assert client.status(m.CopyTo(token, image)) is expected


def test_memory_of_a_protection_is_used_no_further(client):
    model = client.model(conv(KIND))
    for protection, expected in ((1, (NONE, GF)), (2, (GF, NONE)), (3, (NONE, NONE))):
        places = Places(client.pool(protection=protection))
        given = places.pooled(SIZE)
        other = Places(client.pool())
        places.pools += other.pools
        beside = RequestArgument(DataLocation(1, 0, SIZE))
        reads = run(client, model, places.request([given], [beside]))
        writes = run(client, model, places.request([beside], [given]))
        assert (reads, writes) == expected


def test_a_pool_that_no_argument_names_must_be_usable_as_well(client):
    model = client.model(conv(KIND))
    places = Places(client.pool())
    rows = [places.pooled(SIZE)], [places.pooled(SIZE)]
    assert run(client, model, places.request(*rows)) is NONE
    places.pools.append(RequestPool(client.pool(kind="a kind to come")))
    assert run(client, model, places.request(*rows)) is GF


def test_a_fence_is_no_pool(client):
    fence = client.server.fence(FenceState.PENDING)
    assert client.status(m.RegisterPool("ashmem", PAGE, 3, 0), fence) is IA


def limited(connection=None, user=None):
    return Settings(
        connection_limits=dict(CONNECTION_LIMITS) | (connection or {}),
        user_limits=dict(USER_LIMITS) | (user or {}),
    )


def test_bytes_of_pools_are_counted_for_the_connection():
    client = Client(FakeServer(limited({Resource.POOL_BYTES: 2 * PAGE})))
    assert register(client, 2 * PAGE + 1, file_bytes=4 * PAGE) is PERSISTENT
    pool = client.pool(2 * PAGE)
    assert register(client, 1) is TRANSIENT
    client(m.UnregisterPool(pool))
    assert register(client, 2 * PAGE) is NONE


def test_bytes_of_pools_are_counted_for_the_user():
    server = FakeServer(limited(user={Resource.POOL_BYTES: 2 * PAGE}))
    one, other, stranger = Client(server, user=5), Client(server, user=5), Client(server, user=6)
    assert register(one, 2 * PAGE) is NONE
    assert register(other, 1) is TRANSIENT
    assert register(stranger, 2 * PAGE) is NONE


def test_connections_of_a_user_are_counted():
    server = FakeServer(limited(user={Resource.CONNECTIONS: 1}))
    Client(server, user=5)
    refused = server.connect(user=5)
    assert [effect.connection for effect in server.refused] == [refused]
    assert server.call(refused, m.Capabilities()) is None
    assert server.call(server.connect(user=6), m.Capabilities()).feature_level == 1


def test_thousands_of_registrations_leave_nothing(client):
    for _ in range(2000):
        assert client.status(m.UnregisterPool(client.pool(PAGE))) is NONE
        assert register(client, 0) is IA
    assert not client.server.open_files
    assert not any(
        client.server.service.ledger.connections[1].account.used[key]
        for key in (Resource.POOLS, Resource.POOL_BYTES, Resource.CALLS)
    )
