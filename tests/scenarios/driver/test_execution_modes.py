"""Fences, bursts, reusable executions, turns and priorities."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, SHAPE, TYPES, Client, Places, conv, shaped
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Executed, Failed, OutputShape, Timing
from tightship.driver.service import events as ev
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.request import Request
from tightship.driver.types.status import ErrorStatus

KIND = TYPES["float32"]
SIZE = KIND.size_bytes
TRANSIENT = ErrorStatus.MISSED_DEADLINE_TRANSIENT
MS = 1_000_000


class Setup:
    """A client with a model of a convolution and a request of it."""

    def __init__(self, server=None, priority=1):
        self.client = Client(server)
        self.server = self.client.server
        self.model = self.client(m.Prepare(conv(KIND), priority=priority)).model
        self.pool = self.client.pool()
        places = Places(self.pool)
        self.request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])

    def fenced(self, *fences, **terms):
        """Number of a fenced execution behind some fences; nothing has run."""
        waits = tuple(range(len(fences)))
        message = m.ExecuteFenced(self.model, self.request, waits, **terms)
        number = self.server.post(self.client.number, message, *fences)
        return self.server.replies[self.client.number, number].execution

    def info(self, execution):
        return self.client.status(m.GetExecutionInfo(execution))

    def signal(self, fence, *, is_ok=True):
        self.server.happen(ev.FenceChanged(fence.handle, is_ok))


@pytest.fixture
def setup():
    return Setup()


def test_a_fenced_execution_waits_for_all_its_fences(setup):
    fences = setup.server.fence(), setup.server.fence(FenceState.SIGNALLED), setup.server.fence()
    execution = setup.fenced(*fences)
    setup.signal(fences[2])
    assert not setup.server.asked
    setup.signal(fences[0])
    assert setup.server.asked
    setup.server.answer_all()
    assert setup.server.fences[execution] is True
    assert not setup.server.watched


def test_the_result_is_not_reported_before_the_fence_is_signalled(setup):
    execution = setup.fenced()
    reply = setup.server.post(setup.client.number, m.GetExecutionInfo(execution))
    assert setup.server.replies[setup.client.number, reply].status is GF
    setup.server.answer_all()
    info = setup.client(m.GetExecutionInfo(execution))
    assert (info.status, info.timing_fenced) == (NONE, Timing())


def test_a_fence_that_fails_fails_what_waits_for_it(setup):
    fences = setup.server.fence(), setup.server.fence()
    execution = setup.fenced(*fences)
    setup.signal(fences[1], is_ok=False)
    assert setup.server.fences[execution] is False
    assert setup.info(execution) is GF
    assert not setup.server.watched


def test_a_fence_that_never_comes_is_waited_for_until_the_deadline(setup):
    execution = setup.fenced(setup.server.fence(), deadline_ns=setup.server.now_ns + 5 * MS)
    setup.server.advance(5 * MS)
    assert setup.server.fences[execution] is False
    assert setup.info(execution) is TRANSIENT
    assert not setup.server.watched


def test_a_duration_counts_from_the_last_fence(setup):
    fence = setup.server.fence()
    execution = setup.fenced(fence, duration_ns=5 * MS)
    setup.server.advance(100 * MS)
    setup.signal(fence)
    assert setup.server.asked[0].deadline_ns == setup.server.now_ns + 5 * MS
    setup.server.advance(55 * MS)
    assert setup.server.fences[execution] is False
    setup.server.answer_all()
    assert setup.info(execution) is TRANSIENT


def test_the_earlier_of_deadline_and_duration_counts(setup):
    deadline_ns = setup.server.now_ns + 3 * MS
    setup.fenced(duration_ns=5 * MS, deadline_ns=deadline_ns)
    assert setup.server.asked[0].deadline_ns == deadline_ns


def test_a_chain_of_fenced_executions_passes_a_buffer_on(setup):
    """The second is accepted before the first has written what it reads."""
    client, server = setup.client, setup.server
    token = client.buffer((setup.model,), inputs=(0,), outputs=(0,))
    places = Places(setup.pool)
    first = places.request([places.pooled(SIZE)], [places.buffer(token)])
    last = places.request([places.buffer(token)], [places.pooled(SIZE)])
    for is_ok in (True, False):
        server.post(client.number, m.ExecuteFenced(setup.model, first))
        fence = server.fence()
        number = server.post(client.number, m.ExecuteFenced(setup.model, last, (0,)), fence)
        execution = server.replies[client.number, number].execution
        server.engine.status = NONE if is_ok else GF
        server.answer_all()
        setup.signal(fence)
        server.engine.status = NONE
        server.answer_all()
        assert setup.info(execution) is (NONE if is_ok else GF)


def test_no_execution_relies_on_a_writer_that_has_failed(setup):
    client = setup.client
    token = client.buffer((setup.model,), inputs=(0,), outputs=(0,))
    places = Places(setup.pool)
    given, taken = places.pooled(SIZE), places.pooled(SIZE)
    buffer = places.buffer(token)
    setup.server.engine.status = GF
    assert client.status(m.Execute(setup.model, places.request([given], [buffer]))) is GF
    refused = client(m.ExecuteFenced(setup.model, places.request([buffer], [taken])))
    assert isinstance(refused, Failed)


def test_an_execution_that_cannot_begin_takes_no_buffer(setup):
    """The output is being read, so the execution fails; its input can be written afterwards."""
    client, server = setup.client, setup.server
    read, busy = (client.buffer((setup.model,), inputs=(0,), outputs=(0,)) for _ in range(2))
    for token in (read, busy):
        client.initialise(token, SIZE)
    places = Places(setup.pool)
    request = places.request([places.buffer(read)], [places.buffer(busy)])
    pool = client.pool(SIZE)
    server.post(client.number, m.CopyTo(busy, pool))
    number = server.post(client.number, m.Execute(setup.model, request))
    assert server.replies[client.number, number].status is GF
    server.answer_all()
    assert client.status(m.CopyFrom(read, pool)) is NONE


def test_an_output_that_a_buffer_could_not_take_is_a_general_failure(setup):
    client = setup.client
    token = client.buffer((setup.model,), outputs=(0,))
    places = Places(setup.pool)
    request = places.request([places.pooled(SIZE)], [places.buffer(token)])
    setup.server.engine.shape = lambda *_: OutputShape(SHAPE, is_sufficient=False)
    assert client.status(m.Execute(setup.model, request)) is GF


def test_a_fenced_execution_whose_output_does_not_fit_has_failed(setup):
    execution = setup.fenced()
    setup.server.engine.shape = lambda *_: OutputShape(SHAPE, is_sufficient=False)
    setup.server.answer_all()
    assert setup.client(m.GetExecutionInfo(execution)).status is GF
    assert setup.server.fences[execution] is False


def test_fenced_executions_are_kept_until_they_are_released(setup):
    execution = setup.fenced()
    setup.server.answer_all()
    assert setup.client.status(m.ReleaseExecution(execution)) is NONE
    assert setup.info(execution) is IA
    assert setup.client.status(m.ReleaseExecution(execution)) is IA


def test_a_fenced_execution_that_is_released_runs_on(setup):
    execution = setup.fenced()
    setup.server.post(setup.client.number, m.ReleaseExecution(execution))
    setup.server.answer_all()
    assert setup.server.fences[execution] is True


@pytest.mark.parametrize("kind", ["burst", "reusable"])
def test_one_execution_at_a_time(setup, kind):
    client, server = setup.client, setup.server
    if kind == "burst":
        burst = client(m.OpenBurst(setup.model)).burst
        message = m.BurstExecute(burst, setup.request, (-1,))
    else:
        message = m.RunExecution(client(m.CreateExecution(setup.model, setup.request)).execution)
    first = server.post(client.number, message)
    second = server.post(client.number, message)
    assert server.replies[client.number, second].status is GF
    server.answer_all()
    assert isinstance(server.replies[client.number, first], Executed)
    assert client.status(message) is NONE


def test_a_burst_outlives_its_pool_and_the_model(setup):
    client = setup.client
    burst = client(m.OpenBurst(setup.model)).burst
    message = m.BurstExecute(burst, setup.request, (3,))
    assert client.status(message) is NONE
    assert client.status(m.UnregisterPool(setup.pool)) is NONE
    assert client.status(m.ReleaseModel(setup.model)) is NONE
    assert client.status(message) is NONE
    assert client.status(m.Execute(setup.model, setup.request)) is IA
    assert client.status(m.CloseBurst(burst)) is NONE
    assert not setup.server.open_files
    assert not setup.server.models


def test_a_burst_that_is_closed_first_lets_the_pool_go_with_its_registration(setup):
    client = setup.client
    burst = client(m.OpenBurst(setup.model)).burst
    assert client.status(m.BurstExecute(burst, setup.request, (3,))) is NONE
    assert client.status(m.CloseBurst(burst)) is NONE
    assert setup.server.open_files
    assert client.status(m.UnregisterPool(setup.pool)) is NONE
    assert not setup.server.open_files


def test_a_reusable_execution_keeps_its_pool_until_it_is_released(setup):
    client = setup.client
    created = client(m.CreateExecution(setup.model, setup.request)).execution
    client(m.UnregisterPool(setup.pool))
    assert client.status(m.RunExecution(created)) is NONE
    assert client.status(m.ReleaseExecution(created)) is NONE
    assert not setup.server.open_files


def test_a_reusable_execution_of_a_buffer_that_was_freed_is_refused(setup):
    client = setup.client
    token = client.buffer((setup.model,), outputs=(0,))
    places = Places(setup.pool)
    request = places.request([places.pooled(SIZE)], [places.buffer(token)])
    created = client(m.CreateExecution(setup.model, request)).execution
    assert client.status(m.RunExecution(created)) is NONE
    client(m.Free(token))
    assert client.status(m.RunExecution(created)) is IA


def executed(server, count):
    """Clients in the order in which their executions run."""
    order = []
    for _ in range(count):
        model = server.asked[0].model
        order.append(model)
        server.answer()
    return order


def test_a_reusable_execution_of_unknown_outputs_runs_and_does_not_run_fenced(setup):
    client = setup.client
    model = client.model(conv(shaped(KIND, 0, 32, 32, 8)))
    setup.server.engine.produced = SHAPE
    places = Places(setup.pool)
    request = places.request([places.pooled(SIZE, *SHAPE)], [places.pooled(SIZE)])
    created = client(m.CreateExecution(model, request)).execution
    assert client.status(m.RunExecutionFenced(created)) is IA
    assert client.status(m.RunExecution(created)) is NONE


def test_a_request_that_was_checked_with_a_kept_pool_is_checked_again_with_its_own(setup):
    client = setup.client
    file = {"identity": (7, 7)}
    kept, own = (client.pool(protection=each, facts=file) for each in (3, 1))
    burst = client(m.OpenBurst(setup.model)).burst
    first, again = Places(kept), Places(own)
    for places in (first, again):
        places.rows = [places.pooled(SIZE)], [places.pooled(SIZE)]
    assert client.status(m.BurstExecute(burst, first.request(*first.rows), (3,))) is NONE
    request = again.request(*again.rows)
    assert client.status(m.BurstExecute(burst, request, (3,))) is NONE
    assert client.status(m.BurstExecute(burst, request, (-1,))) is GF


def test_clients_take_permits():
    greedy = Setup()
    modest = Setup(greedy.server)
    for setup, count in ((greedy, 5), (modest, 1)):
        for _ in range(count):
            setup.server.post(setup.client.number, m.Execute(setup.model, setup.request))
    order = executed(greedy.server, 6)
    assert order.index(modest.model) <= 2


def test_higher_priorities_of_a_client_go_first():
    setup = Setup()
    models = {
        priority: setup.client(m.Prepare(conv(KIND), priority=priority)).model
        for priority in (0, 1, 2)
    }
    setup.server.post(setup.client.number, m.Execute(setup.model, setup.request))
    for priority in (0, 1, 2, 0, 2):
        message = m.Execute(models[priority], setup.request)
        setup.server.post(setup.client.number, message)
    by_model = {model: priority for priority, model in models.items()}
    assert [by_model[model] for model in executed(setup.server, 6)[1:]] == [2, 2, 1, 0, 0]


@pytest.mark.parametrize("runs_max", [1, 3])
def test_no_more_run_at_once_than_there_are_permits(runs_max):
    setup = Setup(FakeServer(permits=runs_max))
    for _ in range(5):
        setup.server.post(setup.client.number, m.Execute(setup.model, setup.request))
    assert len(setup.server.asked) == runs_max
    setup.server.answer_all()
    replies = [sent.reply for sent in setup.server.sent[-5:]]
    assert all(isinstance(reply, Executed) for reply in replies)


def test_an_execution_that_waits_for_its_permit_ends_at_its_deadline(setup):
    client, server = setup.client, setup.server
    server.post(client.number, m.Execute(setup.model, setup.request))
    late = m.Execute(setup.model, setup.request, deadline_ns=server.now_ns + MS)
    number = server.post(client.number, late)
    server.advance(MS)
    assert server.replies[client.number, number].status is TRANSIENT
    server.answer_all()
    assert client.status(m.Execute(setup.model, setup.request)) is NONE


@pytest.mark.parametrize("is_waiting", [False, True])
def test_a_deadline_that_passes_before_a_permit_is_reported_ends_the_execution(setup, is_waiting):
    client, server = setup.client, setup.server
    if is_waiting:
        server.post(client.number, m.Execute(setup.model, setup.request))
    late = m.Execute(setup.model, setup.request, deadline_ns=server.now_ns + MS)
    server.lag_ns = MS
    number = server.post(client.number, late)
    server.answer_all()
    assert server.replies[client.number, number].status is TRANSIENT
    assert server.permits.is_free
    server.lag_ns = 0
    assert client.status(m.Execute(setup.model, setup.request)) is NONE


def test_a_pool_that_is_unregistered_stays_until_the_run_has_ended(setup):
    setup.server.post(setup.client.number, m.Execute(setup.model, setup.request))
    setup.server.post(setup.client.number, m.UnregisterPool(setup.pool))
    assert setup.server.open_files
    setup.server.answer_all()
    assert not setup.server.open_files


def test_a_request_that_was_checked_is_checked_again_when_its_pool_is_another(setup):
    client = setup.client
    message = m.Execute(setup.model, setup.request)
    assert [client.status(message), client.status(message)] == [NONE, NONE]
    client(m.UnregisterPool(setup.pool))
    assert client.status(message) is IA


def test_a_request_that_was_checked_is_checked_again_when_it_is_fenced(setup):
    model = setup.client.model(conv(shaped(KIND, 0, 32, 32, 8)))
    setup.server.engine.produced = SHAPE
    places = Places(setup.pool)
    request = places.request([places.pooled(SIZE, *SHAPE)], [places.pooled(SIZE)])
    for message, expected in (
        (m.Execute(model, request), NONE),
        (m.ExecuteFenced(model, request), IA),
        (m.Execute(model, request), NONE),
    ):
        assert setup.client.status(message) is expected


def test_what_belongs_to_another_client_is_not_there(setup):
    other = Client(setup.server)
    assert other.status(m.Execute(setup.model, setup.request)) is IA
    model = other.model(conv(KIND))
    assert other.status(m.Execute(model, setup.request)) is IA
    assert other.status(m.UnregisterPool(setup.pool)) is IA
    token = setup.client.buffer((setup.model,), inputs=(0,))
    assert other.status(m.Free(token)) is IA
    assert other.status(m.OpenBurst(setup.model)) is IA
    assert setup.client.status(m.Execute(setup.model, setup.request)) is NONE


def test_an_empty_request_of_nothing_is_refused(setup):
    assert setup.client.status(m.Execute(setup.model, Request((), (), ()))) is IA
