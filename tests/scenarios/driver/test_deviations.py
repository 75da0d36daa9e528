"""Section 2.9: where the reference breaks the rules, and this driver does not."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, MODES, NONE, TYPES, Client, Places, conv, run, shaped
from tightship.driver.protocol import messages as m
from tightship.driver.service import effects as fx
from tightship.driver.types.model import (
    DataLocation,
    Lifetime,
    Model,
    ModelFile,
    Operand,
    Operation,
    Subgraph,
)
from tightship.driver.types.request import Request, RequestArgument, RequestPool

KIND = TYPES["float32"]
SIZE = KIND.size_bytes


@pytest.fixture
def client():
    return Client()


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


def test_d1_a_failed_execution_empties_the_buffer_it_was_to_write(client, mode):
    model = client.model(conv(KIND))
    token = client.buffer((model,), inputs=(0,), outputs=(0,))
    client.initialise(token, SIZE)
    places = Places(client.pool())
    request = places.request([places.pooled(SIZE)], [places.buffer(token)])
    client.server.engine.status = GF
    assert run(client, model, request, mode) is GF
    client.server.engine.status = NONE
    assert client.status(m.CopyTo(token, client.pool(SIZE))) is GF


def test_d2_a_fenced_execution_updates_the_dimensions_of_a_buffer(client):
    model = client.model(conv(shaped(KIND, 0, 32, 32, 8)))
    token = client.buffer((model,), inputs=(0,), outputs=(0,))
    places = Places(client.pool())
    doubled = (2, 32, 32, 8)
    given = places.pooled(2 * SIZE, *doubled)
    request = places.request([given], [places.buffer(token, *doubled)])
    assert run(client, model, request, "fenced") is NONE
    assert client.status(m.CopyTo(token, client.pool(2 * SIZE))) is NONE


def overlapping(client, mode, model, rows, pools):
    inputs, outputs = (
        tuple(RequestArgument(DataLocation(pool, offset, SIZE)) for pool, offset in row)
        for row in rows
    )
    return run(client, model, Request(inputs, outputs, pools), mode)


def test_d3_outputs_and_inputs_have_bytes_of_their_own(client, mode):
    model = client.model(conv(KIND, 2))
    file = {"identity": (7, 7)}
    first, again = client.pool(facts=file), client.pool(facts=file)
    later = client.pool(kind="mmap_fd", size_bytes=1 << 19, offset_bytes=4096, facts=file)
    pools = (RequestPool(first), RequestPool(again), RequestPool(later))
    apart = ((0, 0), (0, SIZE)), ((0, 2 * SIZE), (0, 3 * SIZE))
    assert overlapping(client, mode, model, apart, pools) is NONE
    for written in (
        ((0, 2 * SIZE), (0, 3 * SIZE - 4)),
        ((0, SIZE), (0, 2 * SIZE)),
        ((0, SIZE - 4), (0, 3 * SIZE)),
        ((1, 0), (0, 2 * SIZE)),
        ((1, 2 * SIZE), (0, 2 * SIZE)),
        ((2, 2 * SIZE - 4096), (0, 2 * SIZE)),
        ((2, 5 * SIZE + 4 - 4096), (0, 6 * SIZE)),
    ):
        assert overlapping(client, mode, model, (apart[0], written), pools) is IA
    beside = (2, 5 * SIZE - 4096), (0, 6 * SIZE)
    assert overlapping(client, mode, model, (apart[0], beside), pools) is NONE


def test_d3_the_padding_of_an_output_is_its_own(client, mode):
    model = client.model(conv(KIND))
    pools = (RequestPool(client.pool()),)
    padded = RequestArgument(DataLocation(0, 0, SIZE, 64))
    for offset, expected in ((SIZE, IA), (SIZE + 64, NONE)):
        given = RequestArgument(DataLocation(0, offset, SIZE))
        assert run(client, model, Request((given,), (padded,), pools), mode) is expected


def test_d3_an_output_spares_the_constants_of_the_model(client, mode):
    pool = client.pool()
    operands = (
        Operand(KIND, Lifetime.SUBGRAPH_INPUT),
        Operand(KIND, Lifetime.CONSTANT_REFERENCE, DataLocation(0, SIZE, SIZE)),
        Operand(KIND, Lifetime.SUBGRAPH_OUTPUT),
    )
    main = Subgraph(operands, (Operation(0, (0, 1), (2,)),), (0,), (2,))
    model = client.model(Model(main, pools=(pool,)))
    pools = (RequestPool(pool),)
    rows = {0: NONE, SIZE - 4: IA, SIZE: IA, 2 * SIZE - 4: IA, 2 * SIZE: NONE}
    for offset, expected in rows.items():
        given = ((0, 4 * SIZE),), ((0, offset),)
        assert overlapping(client, mode, model, given, pools) is expected


def test_d3_an_output_spares_the_file_of_its_model(client, mode):
    client.server.engine.types = (KIND,), (KIND,)
    file = {"identity": (7, 7)}
    pool, other = client.pool(facts=file), client.pool(facts=file)
    model = client.model(ModelFile(1, pool, 0, 4096))
    pools = (RequestPool(client.pool()), RequestPool(pool), RequestPool(other))
    for index, expected in enumerate((NONE, IA, IA)):
        given = ((0, 4 * SIZE),), ((index, 0),)
        assert overlapping(client, mode, model, given, pools) is expected


def test_d4_a_value_lies_at_a_multiple_of_its_element(client, mode):
    for name, element in (("float32", 4), ("float16", 2), ("quant8_asymm", 1)):
        kind = TYPES[name]
        model = client.model(conv(kind))
        places = Places(client.pool())
        beside = places.pooled(kind.size_bytes)
        for shift in (1, 2, 4):
            moved = RequestArgument(DataLocation(0, 1 << 18 | shift, kind.size_bytes))
            expected = NONE if shift % element == 0 else IA
            assert run(client, model, places.request([moved], [beside]), mode) is expected


def test_d5_a_sum_that_wraps_in_32_bits_is_refused(client, mode):
    model = client.model(conv(KIND))
    places = Places(client.pool())
    beside = places.pooled(SIZE)
    wrapping = RequestArgument(DataLocation(0, 2**32 - 4, SIZE))
    assert run(client, model, places.request([wrapping], [beside]), mode) is IA


def test_d6_the_size_of_the_file_is_asked_of_the_kernel(client):
    file = client.server.file(4096)
    assert client.status(m.RegisterPool("ashmem", 4097, 3, 0), file) is IA


def test_d7_a_copy_with_memory_that_cannot_be_mapped_is_an_invalid_argument(client):
    model = client.model(conv(KIND))
    token = client.buffer((model,), inputs=(0,))
    client.initialise(token, SIZE)
    client.server.engine.status = IA
    assert client.status(m.CopyTo(token, client.pool(SIZE))) is IA


def test_d8_a_slot_does_not_change_what_it_stands_for(client):
    model = client.model(conv(KIND))
    burst = client(m.OpenBurst(model)).burst
    first, other = client.pool(), client.pool()

    def status(pool, slot=3):
        places = Places(pool)
        request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])
        return client.status(m.BurstExecute(burst, request, (slot,)))

    assert [status(first), status(other), status(first), status(other, 4)] == [NONE, IA, NONE, NONE]
    assert client.status(m.ReleaseSlot(burst, 3)) is NONE
    assert status(other) is NONE


def test_d8_one_slot_is_not_two_pools_of_one_request(client):
    model = client.model(conv(KIND))
    burst = client(m.OpenBurst(model)).burst
    places, beside = Places(client.pool()), RequestArgument(DataLocation(1, 0, SIZE))
    places.pools.append(RequestPool(client.pool()))
    request = places.request([places.pooled(SIZE)], [beside])
    assert client.status(m.BurstExecute(burst, request, (3, 3))) is IA
    assert client.status(m.BurstExecute(burst, request, (3, 4))) is NONE


def test_d9_a_pool_is_handed_to_the_server_once_and_dropped_once(client):
    """No effect in between is about mapping: the server maps at first use and keeps it."""
    model = client.model(conv(KIND))
    pool = client.pool()
    places = Places(pool)
    request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])
    seen = []
    client.server.ask = lambda effect, ask=client.server.ask: (
        seen.append(type(effect)),
        ask(effect),
    )
    for mode in MODES * 3:
        assert run(client, model, request, mode) is NONE
    assert set(seen) == {fx.AwaitPermit, fx.Run}


def test_d10_a_pool_is_written_only_where_a_run_writes_it(client):
    """Inputs need no right to write: the protection of a pool is kept."""
    model = client.model(conv(KIND))
    places = Places(client.pool(protection=1))
    given = places.pooled(SIZE)
    places.pools.append(RequestPool(client.pool()))
    written = RequestArgument(DataLocation(1, 0, SIZE))
    number = client.server.post(client.number, m.Execute(model, places.request([given], [written])))
    (asked,) = client.server.asked
    assert not asked.inputs[0].pool.is_writable
    client.server.answer_all()
    assert (client.number, number) in client.server.replies


def test_d11_buffers_have_dynamic_shapes(client):
    model = client.model(conv(shaped(KIND)))
    token = client.buffer((model,), inputs=(0,), outputs=(0,))
    client.initialise(token, SIZE, KIND.dimensions)
    assert client.status(m.CopyTo(token, client.pool(SIZE))) is NONE


def test_d12_a_token_is_never_given_again(client):
    model = client.model(conv(KIND))
    stale = client.buffer((model,), inputs=(0,))
    client(m.Free(stale))
    fresh = client.buffer((model,), inputs=(0,))
    assert fresh != stale
    client.initialise(fresh, SIZE)
    places = Places(client.pool())
    request = places.request([places.buffer(stale)], [places.pooled(SIZE)])
    assert run(client, model, request) is IA


@pytest.mark.parametrize("slot", [-1, -2, 0, 99])
def test_d13_a_slot_that_is_none_cannot_be_released(client, slot):
    burst = client(m.OpenBurst(client.model(conv(KIND)))).burst
    assert client.status(m.ReleaseSlot(burst, slot)) is IA
    assert client.status(m.ReleaseSlot(burst + 1, slot)) is IA


def test_tokens_of_all_clients_differ():
    server = FakeServer()
    tokens = set()
    for _ in range(20):
        client = Client(server)
        model = client.model(conv(KIND))
        tokens |= {client.buffer((model,), inputs=(0,)) for _ in range(20)}
    assert len(tokens) == 400
