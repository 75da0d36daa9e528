"""Table 2.3: buffers as arguments; 7 rows for each of 4 types and 3 ways, and reusable ones."""

import pytest

from tests.driver.small_models import (
    GF,
    IA,
    MODES,
    NONE,
    TYPES,
    Client,
    Places,
    conv,
    run,
    shaped,
)
from tightship.driver.protocol.messages import CopyTo, ExecuteFenced, Free, GetExecutionInfo
from tightship.driver.service.events import FenceChanged
from tightship.driver.types.status import ErrorStatus

PERSISTENT = ErrorStatus.MISSED_DEADLINE_PERSISTENT
DYNAMIC = (0, 32, 32, 8)


@pytest.fixture
def client():
    return Client()


@pytest.fixture(params=TYPES.values(), ids=TYPES.keys())
def kind(request):
    return request.param


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


class Case:
    """A model of convolutions and requests that put some arguments in buffers."""

    def __init__(self, client, kind, mode, count=1):
        self.client, self.kind, self.mode = client, kind, mode
        self.count = count
        self.model = client.model(conv(kind, count))
        self.pool = client.pool()

    def run(self, inputs=(), outputs=(), model=None):
        """Status with buffers at these arguments: index -> token, or token and dimensions."""
        places = Places(self.pool)
        rows = []
        for taken in (dict(inputs), dict(outputs)):
            row = []
            for index in range(self.count):
                token, *dimensions = taken.get(index, [None])
                size_bytes = self.kind.size_bytes or 32768
                row.append(
                    places.pooled(size_bytes)
                    if token is None
                    else places.buffer(token, *dimensions)
                )
            rows.append(row)
        request = places.request(*rows)
        return run(self.client, model or self.model, request, self.mode)


def test_e1_a_token_that_is_none(client, kind, mode):
    case = Case(client, kind, mode)
    for token in (0, 100, -1):
        assert case.run(inputs={0: [token]}) is IA
        assert case.run(outputs={0: [token]}) is IA


def test_e2_another_model_that_is_the_same(client, kind, mode):
    case = Case(client, kind, mode)
    token = client.buffer((case.model,), inputs=(0,), outputs=(0,))
    client.initialise(token, kind.size_bytes)
    other = client.model(conv(kind))
    assert case.run(inputs={0: [token]}, model=other) is IA
    assert case.run(outputs={0: [token]}, model=other) is IA
    assert case.run(inputs={0: [token]}) is NONE


def test_e3_another_argument(client, kind, mode):
    case = Case(client, kind, mode, count=2)
    token = client.buffer((case.model,), inputs=(0,))
    client.initialise(token, kind.size_bytes)
    assert case.run(inputs={1: [token]}) is IA
    assert case.run(outputs={1: [token]}) is IA
    assert case.run(inputs={0: [token]}) is NONE


def test_e4_the_other_direction(client, kind, mode):
    case = Case(client, kind, mode)
    read = client.buffer((case.model,), inputs=(0,))
    written = client.buffer((case.model,), outputs=(0,))
    client.initialise(written, kind.size_bytes)
    assert case.run(outputs={0: [read]}) is IA
    assert case.run(inputs={0: [written]}) is IA


def test_e5_a_buffer_that_holds_nothing(client, kind, mode):
    case = Case(client, kind, mode)
    token = client.buffer((case.model,), inputs=(0,), outputs=(0,))
    assert case.run(inputs={0: [token]}) is GF
    assert case.run(outputs={0: [token]}) is NONE
    assert case.run(inputs={0: [token]}) is NONE


def test_e6_one_buffer_for_two_arguments(client, kind, mode):
    case = Case(client, kind, mode, count=2)
    token = client.buffer((case.model,), inputs=(0, 1), outputs=(0, 1))
    client.initialise(token, kind.size_bytes)
    assert case.run(inputs={0: [token]}, outputs={0: [token]}) is IA
    assert case.run(outputs={0: [token], 1: [token]}) is IA
    assert case.run(inputs={0: [token], 1: [token]}) is NONE


def test_e7_dimensions_that_the_buffer_does_not_have(client, kind, mode):
    case = Case(client, shaped(kind, *DYNAMIC), mode)
    case.kind = kind
    token = client.buffer((case.model,), inputs=(0,), outputs=(0,), dimensions=(1, 0, 0, 0))
    client.initialise(token, kind.size_bytes)
    doubled = (2, 32, 32, 8)
    client.server.engine.produced = doubled
    places = Places(case.pool)
    big = places.pooled(2 * kind.size_bytes, *doubled)
    twice = places.pooled(2 * kind.size_bytes, *doubled)
    full = places.buffer(token, *doubled)
    bare = places.buffer(token)
    assert run(client, case.model, places.request([full], [big]), mode) is IA
    assert run(client, case.model, places.request([big], [full]), mode) is IA
    expected = IA if mode == "fenced" else GF
    assert run(client, case.model, places.request([twice], [bare]), mode) is expected


def test_the_deadline_goes_before_tokens_and_roles(client, kind, mode):
    model, pool = client.model(conv(kind)), client.pool()
    token = client.buffer((model,), inputs=(0,))
    for wrong in (token, 100):
        places = Places(pool)
        request = places.request([places.pooled(kind.size_bytes)], [places.buffer(wrong)])
        assert run(client, model, request, mode) is IA
        status = run(client, model, request, mode, deadline_ns=0)
        assert status is (IA if mode == "reusable" else PERSISTENT)


def test_whether_a_buffer_holds_anything_goes_before_its_dimensions(client, kind, mode):
    model, places = client.model(conv(shaped(kind, *DYNAMIC))), Places(client.pool())
    token = client.buffer((model,), inputs=(0,), dimensions=(1, 0, 0, 0))
    doubled = (2, 32, 32, 8)
    given = [places.buffer(token, *doubled)], [places.pooled(2 * kind.size_bytes, *doubled)]
    assert run(client, model, places.request(*given), mode) is GF
    client.initialise(token, kind.size_bytes, (1, 32, 32, 8))
    assert run(client, model, places.request(*given), mode) is IA


def test_an_input_has_the_dimensions_of_now_and_an_output_those_of_the_allocation(
    client, kind, mode
):
    model, places = client.model(conv(shaped(kind, *DYNAMIC))), Places(client.pool())
    token = client.buffer((model,), inputs=(0,), outputs=(0,))
    client.initialise(token, kind.size_bytes, (1, 32, 32, 8))
    doubled = (2, 32, 32, 8)
    pooled = places.pooled(2 * kind.size_bytes, *doubled)
    beside = places.pooled(2 * kind.size_bytes, *doubled)
    held = places.buffer(token, *doubled)
    assert run(client, model, places.request([held], [pooled]), mode) is IA
    assert run(client, model, places.request([pooled], [held]), mode) is NONE
    assert run(client, model, places.request([held], [beside]), mode) is NONE


def test_dimensions_are_checked_again_when_a_run_begins(client, kind):
    model, places = client.model(conv(shaped(kind, *DYNAMIC))), Places(client.pool())
    token = client.buffer((model,), inputs=(0,))
    client.initialise(token, kind.size_bytes, (1, 32, 32, 8))
    held, beside = places.buffer(token, 1, 32, 32, 8), places.pooled(kind.size_bytes, 1, 32, 32, 8)
    fence = client.server.fence()
    call = ExecuteFenced(model, places.request([held], [beside]), (0,))
    launched = client.server.replies[client.number, client.server.post(client.number, call, fence)]
    client.initialise(token, 2 * kind.size_bytes, (2, 32, 32, 8))
    client.server.happen(FenceChanged(fence.handle, True))
    assert client(GetExecutionInfo(launched.execution)).status is IA
    assert client.server.fences[launched.execution] is False


def test_e8_an_output_of_a_failed_execution_holds_nothing(client, kind, mode):
    case = Case(client, kind, mode)
    token = client.buffer((case.model,), inputs=(0,), outputs=(0,))
    client.initialise(token, kind.size_bytes)
    client.server.engine.status = GF
    assert case.run(outputs={0: [token]}) is GF
    client.server.engine.status = NONE
    assert case.run(inputs={0: [token]}) is GF


def test_e8_a_request_that_is_refused_leaves_its_outputs(client, kind, mode):
    case = Case(client, kind, mode, count=2)
    token = client.buffer((case.model,), inputs=(0,), outputs=(0,))
    client.initialise(token, kind.size_bytes)
    assert case.run(inputs={1: [token]}, outputs={0: [token]}) is IA
    assert case.run(inputs={0: [token]}) is NONE


def test_e8_a_state_goes_from_execution_to_execution(client, kind, mode):
    case = Case(client, kind, mode)
    one, other = (client.buffer((case.model,), inputs=(0,), outputs=(0,)) for _ in range(2))
    client.initialise(one, kind.size_bytes)
    for _ in range(30):
        assert case.run(inputs={0: [one]}, outputs={0: [other]}) is NONE
        one, other = other, one
    assert client.status(CopyTo(one, client.pool(kind.size_bytes))) is NONE


@pytest.mark.parametrize("mode", ["sync", "burst", "reusable"])
def test_e8_a_buffer_takes_another_shape_with_every_output(client, kind, mode):
    case = Case(client, shaped(kind, *DYNAMIC), mode)
    token = client.buffer((case.model,), inputs=(0,), outputs=(0,))
    for length in (3, 1, 2):
        client.server.engine.produced = (length, 32, 32, 8)
        places = Places(case.pool)
        given = places.pooled(kind.size_bytes, 1, 32, 32, 8)
        out = places.buffer(token)
        assert run(client, case.model, places.request([given], [out]), mode) is NONE
        size_bytes = length * kind.size_bytes
        assert client.status(CopyTo(token, client.pool(size_bytes))) is NONE
        assert client.status(CopyTo(token, client.pool(2 * size_bytes))) is IA


def test_e8_freeing_a_token_lets_a_fenced_execution_end(client, kind):
    case = Case(client, kind, "fenced")
    token = client.buffer((case.model,), outputs=(0,))
    places = Places(case.pool)
    request = places.request([places.pooled(kind.size_bytes)], [places.buffer(token)])
    number = client.server.post(client.number, ExecuteFenced(case.model, request))
    launched = client.server.replies[client.number, number]
    assert client.server.asked, "it runs"
    client.server.post(client.number, Free(token))
    assert token in client.server.buffers
    client.server.answer_all()
    assert client.server.fences[launched.execution]
    assert client(GetExecutionInfo(launched.execution)).status is NONE
    assert token not in client.server.buffers
    assert case.run(outputs={0: [token]}) is IA
