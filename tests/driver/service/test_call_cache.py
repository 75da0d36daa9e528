"""Calls that the server may repeat without the service, and until when."""

import pytest

from tests.driver.fake_server import FakeEngine, FakeServer
from tests.driver.small_models import GF, IA, NONE, TYPES, Client, Places, conv
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import OutputShape, Timing
from tightship.driver.service import events as ev
from tightship.driver.types.settings import Settings
from tightship.driver.types.status import ErrorStatus

KIND = TYPES["float32"]
SIZE = KIND.size_bytes


class Setup:
    """A client with a model and a request of it, which a server may run again."""

    def __init__(self, **settings):
        self.client = Client(FakeServer(Settings(**settings)))
        self.server = self.client.server
        self.model = self.client(m.Prepare(conv(KIND))).model
        self.pool = self.client.pool()
        places = Places(self.pool)
        self.request = places.request([places.pooled(SIZE)], [places.pooled(SIZE)])
        self.execute = m.Execute(self.model, self.request)

    @property
    def repeats(self):
        return [call for _, call in self.server.repeats]

    def reusable(self):
        call = m.CreateExecution(self.model, self.request)
        return m.RunExecution(self.client(call).execution)

    def bursting(self):
        burst = self.client(m.OpenBurst(self.model)).burst
        return m.BurstExecute(burst, self.request, (-1,))


@pytest.fixture
def setup():
    return Setup()


@pytest.mark.parametrize("kind", ["execute", "reusable", "bursting"])
def test_a_run_on_pools_may_be_repeated(setup, kind):
    made = getattr(setup, kind)
    call = made if kind == "execute" else made()
    reply = setup.client(call)
    (may,) = setup.server.repeats.values()
    assert (may.call, may.reply) == (call, reply)
    assert setup.client(call) == reply


def test_a_run_that_reported_too_little_room_may_not_be_repeated(setup):
    setup.server.engine.shape = lambda *_: OutputShape(KIND.dimensions, is_sufficient=False)
    assert setup.client.status(setup.execute) is ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
    assert not setup.server.repeats


def test_the_service_says_the_same_when_it_is_asked_all_the_same(setup):
    for _ in range(3):
        assert setup.client.status(setup.execute) is NONE
        assert setup.repeats == [setup.execute]


@pytest.mark.parametrize(
    "terms", [{"measure_timing": True}, {"deadline_ns": 10**15}], ids=["timed", "due"]
)
def test_a_call_whose_answer_or_fate_depends_on_time_may_not(setup, terms):
    assert setup.client.status(m.Execute(setup.model, setup.request, **terms)) is NONE
    assert not setup.repeats


def test_a_fenced_run_may_not(setup):
    setup.client(m.ExecuteFenced(setup.model, setup.request))
    setup.server.answer_all()
    assert not setup.repeats


def test_a_run_that_failed_may_not(setup):
    setup.server.engine.status = GF
    assert setup.client.status(setup.execute) is GF
    assert not setup.repeats


@pytest.mark.parametrize("took_ns", [100, 101])
def test_a_long_run_may_not(took_ns):
    class Engine(FakeEngine):
        def run(self, run, types):
            done = super().run(run, types)
            return ev.RunFinished(done.execution, done.status, done.shapes, Timing(0, took_ns))

    setup = Setup(repeat_max_ns=100)
    setup.server.engine = Engine()
    assert setup.client.status(setup.execute) is NONE
    assert bool(setup.repeats) == (took_ns == 100)


def test_what_is_given_back_meanwhile_may_not(setup):
    number = setup.server.post(setup.client.number, setup.execute)
    setup.client(m.UnregisterPool(setup.pool))
    setup.server.answer_all()
    assert setup.server.replies[setup.client.number, number].status is NONE
    assert not setup.repeats


def test_any_call_that_changes_something_ends_it(setup):
    for call in (
        m.UnregisterPool(setup.pool),
        m.ExecuteFenced(setup.model, setup.request),
        m.Capabilities(),
        m.ReleaseModel(setup.model),
    ):
        fresh = Setup()
        fresh.client(fresh.execute)
        assert fresh.repeats
        fresh.client(call)
        assert not fresh.repeats
    setup.client(setup.execute)
    setup.server.happen(ev.Disconnected(setup.client.number))
    assert not setup.repeats


def test_after_a_pool_is_gone_the_call_is_refused(setup):
    setup.client(setup.execute)
    setup.client(m.UnregisterPool(setup.pool))
    assert setup.client.status(setup.execute) is IA
    assert not setup.repeats


def test_a_reusable_execution_under_way_is_not_repeated_beside(setup):
    call, other = setup.reusable(), setup.reusable()
    setup.client(call)
    setup.client(other)
    assert setup.repeats == [call, other]
    number = setup.server.post(setup.client.number, call)
    assert setup.client.number in setup.server.paused
    assert setup.client.status(call) is GF
    assert setup.server.replies[setup.client.number, number].status is NONE
    assert setup.repeats == [call, other]
    assert not setup.server.paused


def test_one_client_says_nothing_of_anothers(setup):
    setup.client(setup.execute)
    other = Client(setup.server)
    other(m.Capabilities())
    setup.server.happen(ev.Disconnected(other.number))
    assert setup.repeats == [setup.execute]


def test_a_request_that_comes_again_is_checked_anew_where_buffers_changed(setup):
    client, role = setup.client, m.Role(0, 0)
    first, second, unused = [
        client(m.Allocate((), (setup.model,), roles, others)).token
        for roles, others in (((), (role,)), ((role,), ()), ((role,), ()))
    ]
    places = Places(setup.pool)
    ends = [places.pooled(SIZE)], [places.buffer(first)]
    places.buffer(unused)
    write = m.Execute(setup.model, places.request(*ends))
    assert [client.status(write) for _ in range(3)] == [NONE] * 3
    other = Places(setup.pool)
    read = m.Execute(setup.model, other.request([other.buffer(second)], [other.pooled(SIZE)]))
    assert client.status(read) is GF
    client.initialise(second, SIZE)
    assert [client.status(call) for call in (read, write, read)] == [NONE] * 3
    client(m.Free(second))
    assert client.status(read) is IA
    client(m.Free(unused))
    assert client.status(write) is IA
