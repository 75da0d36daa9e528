"""Table 2.4: requests, bursts, deadlines; and the rules of each way to execute."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import (
    IA,
    MODES,
    NONE,
    SHAPE,
    TYPES,
    Client,
    Places,
    add,
    conv,
    run,
    shaped,
)
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.codec import decode_call, encode
from tightship.driver.protocol.replies import Executed, Failed, Timing
from tightship.driver.service import effects as fx
from tightship.driver.service import events as ev
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.model import DataLocation
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import FormatError

KIND = TYPES["float32"]
SIZE = KIND.size_bytes
SHORT = ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
TRANSIENT = ErrorStatus.MISSED_DEADLINE_TRANSIENT
PERSISTENT = ErrorStatus.MISSED_DEADLINE_PERSISTENT
MS = 1_000_000


@pytest.fixture
def client():
    return Client()


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


def parts(client):
    """The inputs and outputs of a valid request of two convolutions, and its pools."""
    places = Places(client.pool())
    inputs = [places.pooled(SIZE) for _ in range(2)]
    outputs = [places.pooled(SIZE) for _ in range(2)]
    return inputs, outputs, tuple(places.pools)


def request_of(inputs, outputs, pools):
    return Request(tuple(inputs), tuple(outputs), pools)


@pytest.mark.parametrize("index", [0, 1])
def test_q1_without_an_input(client, mode, index):
    inputs, outputs, pools = parts(client)
    model = client.model(conv(KIND, 2))
    assert run(client, model, request_of(inputs, outputs, pools), mode) is NONE
    del inputs[index]
    assert run(client, model, request_of(inputs, outputs, pools), mode) is IA


@pytest.mark.parametrize("index", [0, 1])
def test_q2_without_an_output(client, mode, index):
    inputs, outputs, pools = parts(client)
    model = client.model(conv(KIND, 2))
    del outputs[index]
    assert run(client, model, request_of(inputs, outputs, pools), mode) is IA


def small(client):
    """A model of one convolution, and a request of it."""
    places = Places(client.pool())
    request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])
    return client.model(conv(KIND)), request


def test_q3_a_burst_with_wrong_slots(client):
    model, request = small(client)
    burst = client(m.OpenBurst(model)).burst
    for slots in ((-2,), (), (1, 2)):
        assert client.status(m.BurstExecute(burst, request, slots)) is IA
    assert client.status(m.ReleaseSlot(burst, -2)) is IA
    assert client.status(m.BurstExecute(burst, request, (3,))) is NONE


def test_q4_slots_are_freed_in_any_way_and_the_burst_goes_on(client):
    model, request = small(client)
    burst = client(m.OpenBurst(model)).burst
    assert client.status(m.BurstExecute(burst, request, (3,))) is NONE
    statuses = [client.status(m.ReleaseSlot(burst, slot)) for slot in (3, 3, 77)]
    assert statuses == [NONE, IA, IA]
    assert client.status(m.BurstExecute(burst, request, (3,))) is NONE


def test_q5_a_message_that_is_damaged_is_answered_and_the_burst_goes_on(client):
    model, request = small(client)
    burst = client(m.OpenBurst(model)).burst
    data = encode(m.BurstExecute(burst, request, (3,)), 1)
    for position in range(16, len(data)):
        before, after = data[:position], data[position + 1 :]
        for damaged in (before + after, before + b"\xff" + data[position:]):
            with pytest.raises(FormatError):
                decode_call(damaged)
        try:
            reply = client(decode_call(before + bytes([data[position] ^ 0x80]) + after).message)
        except FormatError:
            continue
        assert isinstance(reply, Failed | Executed)  # another deadline is as valid
    assert client.status(m.BurstExecute(burst, request, (3,))) is NONE


def test_q8_a_fence_that_is_none_or_has_failed(client):
    model, request = small(client)
    assert client.status(m.ExecuteFenced(model, request, (0,))) is IA
    assert client.status(m.ExecuteFenced(model, request, (-1,))) is IA
    assert client.status(m.ExecuteFenced(model, request, (0,)), client.server.file()) is IA
    failed = client.server.fence(FenceState.ERROR)
    assert client.status(m.ExecuteFenced(model, request, (0,)), failed) is IA
    assert not client.server.open_files - {1}


OPEN_SHAPES = [(), (0, 32, 32, 8), (1, 0, 0, 8)]


@pytest.mark.parametrize("dimensions", OPEN_SHAPES)
def test_q9_outputs_of_unknown_dimensions(client, mode, dimensions):
    client.server.engine.produced = SHAPE
    model = client.model(conv(shaped(KIND, *dimensions)))
    places = Places(client.pool())
    request = places.request([places.pooled(SIZE, *SHAPE)], [places.pooled(SIZE)])
    assert run(client, model, request, mode) is (IA if mode == "fenced" else NONE)
    reply = client(m.Execute(model, request))
    assert [shape.dimensions for shape in reply.shapes] == [SHAPE]


@pytest.mark.parametrize("dimensions", OPEN_SHAPES)
@pytest.mark.parametrize("given", [(), (0, 0, *SHAPE[2:])])
def test_inputs_of_unknown_dimensions(client, mode, dimensions, given):
    model = client.model(conv(shaped(KIND, *dimensions)))
    places = Places(client.pool())
    request = places.request([places.pooled(SIZE, *given)], [places.pooled(SIZE, *SHAPE)])
    assert run(client, model, request, mode) is IA


@pytest.mark.parametrize("dimensions", OPEN_SHAPES)
def test_an_output_of_unknown_dimensions_has_room_all_the_same(client, mode, dimensions):
    model = client.model(conv(shaped(KIND, *dimensions)))
    places = Places(client.pool())
    request = places.request([places.pooled(SIZE, *SHAPE)], [places.pooled(0)])
    assert run(client, model, request, mode) is IA


def test_a_scalar_is_given_no_dimensions(client, mode):
    scalar = ValueType(OperandType.INT32)
    model = client.model(conv(scalar))
    places = Places(client.pool())
    fine, given = [places.pooled(4) for _ in range(2)], [places.pooled(4, 1), places.pooled(4, 0)]
    assert run(client, model, places.request(fine[:1], fine[1:]), mode) is NONE
    for bad in given:
        assert run(client, model, places.request([bad], fine[1:]), mode) is IA
        assert run(client, model, places.request(fine[:1], [bad]), mode) is IA


@pytest.mark.parametrize("dimensions", OPEN_SHAPES)
def test_q10_outputs_that_are_one_element_short(client, mode, dimensions):
    client.server.engine.produced = SHAPE
    model = client.model(conv(shaped(KIND, *dimensions), 2))
    places = Places(client.pool())
    inputs = [places.pooled(SIZE, *SHAPE) for _ in range(2)]
    outputs = [places.pooled(SIZE - 4), places.pooled(SIZE)]
    request = places.request(inputs, outputs)
    assert run(client, model, request, mode) is (IA if mode == "fenced" else SHORT)
    reply = client(m.Execute(model, request, measure_timing=True))
    assert [shape.is_sufficient for shape in reply.shapes] == [False, True]
    assert reply.timing == Timing()


@pytest.mark.parametrize("priority", [0, 1, 2])
def test_q11_preparing_with_a_priority(client, priority):
    assert client.status(m.Prepare(conv(KIND), priority=priority)) is NONE


@pytest.mark.parametrize("priority", [-1, 3])
def test_q11_preparing_with_no_priority(client, priority):
    assert client.status(m.Prepare(conv(KIND), priority=priority)) is IA
    assert client.status(m.Prepare(conv(KIND), preference=priority)) is IA


def test_q11_preparing_before_a_deadline(client):
    now_ns = client.server.now_ns
    assert client.status(m.Prepare(conv(KIND), deadline_ns=now_ns)) is PERSISTENT
    assert client.status(m.Prepare(conv(KIND), deadline_ns=now_ns + 5 * MS)) is NONE
    assert client.status(m.Prepare(conv(KIND), deadline_ns=2**63 - 1)) is NONE
    assert client.status(m.Prepare(conv(KIND), deadline_ns=-2)) is IA


def test_q11_a_model_that_comes_after_its_deadline_is_dropped(client):
    message = m.Prepare(conv(KIND), deadline_ns=client.server.now_ns + 5 * MS)
    number = client.server.post(client.number, message)
    client.server.advance(5 * MS)
    assert client.server.replies[client.number, number].status is TRANSIENT
    assert isinstance(client.server.refused[0], fx.StopPrepare)
    client.server.answer_all()
    assert not client.server.models
    assert not client.server.service.ledger.waiting


def test_q11_a_model_is_not_prepared_for_a_client_that_is_gone(client):
    message = m.Prepare(conv(KIND), deadline_ns=client.server.now_ns + 5 * MS)
    other = Client(client.server)
    number = other.server.post(other.number, m.Prepare(conv(KIND)))
    client.server.post(client.number, message)
    gone = client.server.asked[1].model
    client.server.happen(ev.Disconnected(client.number))
    assert client.server.refused == [fx.StopPrepare(gone)]
    assert client.server.service.next_ns() is None
    client.server.answer_all()
    assert client.server.models.keys() == {client.server.replies[other.number, number].model}


def test_q12_executing_before_a_deadline(client, mode):
    model, request = small(client)
    now_ns = client.server.now_ns
    for deadline_ns, expected in (
        (now_ns, PERSISTENT),
        (0, PERSISTENT),
        (now_ns + 5 * MS, NONE),
        (2**63 - 1, NONE),
        (-1, NONE),
        (-2, IA),
    ):
        assert run(client, model, request, mode, deadline_ns=deadline_ns) is expected


BAD_LOCATIONS = {
    "a sum that overflows": DataLocation(0, 2**63 - 1, SIZE),
    "a padding that overflows": DataLocation(0, 0, SIZE, 2**63 - 1),
    "an offset below zero": DataLocation(0, -4, SIZE),
    "a length below zero": DataLocation(0, 0, -SIZE),
    "a padding below zero": DataLocation(0, 64, SIZE, -64),
    "no length": DataLocation(0, 0, 0),
    "a pool below zero": DataLocation(-1, 0, SIZE),
    "a pool too many": DataLocation(1, 0, SIZE),
    "a byte too far": DataLocation(0, (1 << 20) - SIZE + 4, SIZE),
    "a padding too far": DataLocation(0, (1 << 20) - SIZE, SIZE, 1),
    "one byte more than it takes": DataLocation(0, 0, SIZE + 1),
    "no multiple of its element": DataLocation(0, 2, SIZE),
}


@pytest.mark.parametrize("location", BAD_LOCATIONS.values(), ids=BAD_LOCATIONS.keys())
def test_q13_a_location_with(client, mode, location):
    model, request = small(client)
    bad = RequestArgument(location)
    beside = RequestArgument(DataLocation(0, 1 << 19, SIZE))
    for inputs, outputs in (((bad,), (beside,)), ((beside,), (bad,))):
        assert run(client, model, Request(inputs, outputs, request.pools), mode) is IA


def test_q13_the_last_bytes_of_a_pool_may_be_used(client, mode):
    model, request = small(client)
    last = RequestArgument(DataLocation(0, (1 << 20) - SIZE - 64, SIZE, 64))
    assert run(client, model, Request(request.inputs, (last,), request.pools), mode) is NONE


@pytest.mark.parametrize("dimensions", [(2**31, 32, 32, 8), (-1, 32, 32, 8), (1, 32, 32)])
def test_q13_dimensions_that_no_tensor_has(client, mode, dimensions):
    model, request = small(client)
    location = request.inputs[0].location
    bad = RequestArgument(location, dimensions)
    assert run(client, model, Request((bad,), request.outputs, request.pools), mode) is IA


def test_q13_no_value_and_yet_a_location_or_dimensions(client, mode):
    model, request = small(client)
    bad = [
        RequestArgument(DataLocation(0, 0, SIZE), has_no_value=True),
        RequestArgument(DataLocation(), SHAPE, has_no_value=True),
    ]
    for argument in bad:
        assert run(client, model, Request((argument,), request.outputs, request.pools), mode) is IA
    none = RequestArgument(DataLocation(), has_no_value=True)
    assert run(client, model, Request((none,), request.outputs, request.pools), mode) is NONE


def test_q13_a_token_and_a_pool_taken_for_each_other(client, mode):
    model, request = small(client)
    token = client.buffer((model,), inputs=(0,))
    swapped = [(RequestPool(token),), (RequestPool(request.pools[0].identifier, is_token=True),)]
    for pools in swapped:
        assert run(client, model, Request(request.inputs, request.outputs, pools), mode) is IA


@pytest.mark.parametrize("token", [0, -1])
def test_q13_a_token_that_is_none_is_looked_at_before_the_deadline(client, mode, token):
    model, request = small(client)
    pools = (*request.pools, RequestPool(token, is_token=True))
    bad = Request(request.inputs, request.outputs, pools)
    assert run(client, model, bad, mode, deadline_ns=0) is IA


def test_q13_a_place_in_a_buffer(client, mode):
    model, request = small(client)
    token = client.buffer((model,), outputs=(0,))
    pools = (*request.pools, RequestPool(token, is_token=True))
    for location in (DataLocation(1, 0, SIZE), DataLocation(1, 4), DataLocation(1, 0, 0, 4)):
        output = RequestArgument(location)
        assert run(client, model, Request(request.inputs, (output,), pools), mode) is IA


def test_more_pools_than_a_message_holds_are_refused():
    request = Request((), (), tuple(RequestPool(1) for _ in range(65_536)))
    with pytest.raises(FormatError, match="65536 entries"):
        encode(m.Execute(1, request), 1)


def test_inputs_may_overlap(client, mode):
    model = client.model(add(KIND))
    places = Places(client.pool())
    both, scalar = places.pooled(SIZE), places.pooled(4)
    request = places.request([both, both, scalar], [places.pooled(SIZE)])
    assert run(client, model, request, mode) is NONE


def test_timing_is_reported_only_on_request(client):
    model, request = small(client)
    assert client(m.Execute(model, request)).timing == Timing()
    measured = client(m.Execute(model, request, measure_timing=True)).timing
    assert 0 <= measured.on_device_ns <= measured.in_driver_ns


def test_a_loop_timeout_is_two_seconds_and_fifteen_at_most(client):
    model, request = small(client)
    for asked, given in ((-1, 2 * 10**9), (5, 5), (10**12, 15 * 10**9)):
        client.server.post(client.number, m.Execute(model, request, loop_timeout_ns=asked))
        assert client.server.asked[0].loop_timeout_ns == given
        client.server.answer_all()
    assert client.status(m.Execute(model, request, loop_timeout_ns=-2)) is IA


def test_a_loop_that_takes_too_long_is_reported_as_the_engine_does(client):
    model, request = small(client)
    client.server.engine.status = TRANSIENT
    reply = client(m.Execute(model, request, loop_timeout_ns=MS))
    assert reply == Failed(TRANSIENT, "The execution failed.")


def test_a_run_is_stopped_even_if_time_has_jumped():
    client = Client(FakeServer())
    model, request = small(client)
    message = m.Execute(model, request, deadline_ns=client.server.now_ns + 10 * MS)
    number = client.server.post(client.number, message)
    client.server.now_ns += 1000 * MS
    client.server.happen(ev.Tick())
    assert client.server.stopped == {client.server.asked[0].execution}
    assert client.server.replies[client.number, number].status is TRANSIENT


def test_a_run_without_an_answer_is_given_up_after_its_deadline():
    client = Client(FakeServer())
    model, request = small(client)
    message = m.Execute(model, request, deadline_ns=client.server.now_ns + 10 * MS)
    number = client.server.post(client.number, message)
    execution = client.server.asked[0].execution
    client.server.advance(10 * MS)
    assert client.server.stopped == {execution}
    assert (client.number, number) not in client.server.replies
    client.server.advance(50 * MS)
    assert client.server.replies[client.number, number].status is TRANSIENT
    client.server.answer_all()
    assert isinstance(client(m.Execute(model, request)), Executed)
