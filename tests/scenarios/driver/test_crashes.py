"""A client dies after every single step of a session that makes every call."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import IA, NONE, TYPES, Client, Places, conv, status_of
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Done
from tightship.driver.service import events as ev

KIND = TYPES["float32"]
SIZE = KIND.size_bytes


class CrashedError(Exception):
    """The step came after which the client dies."""


class Session:
    """One client's session, stopped after so many events that it causes."""

    def __init__(self, server, stop):
        self.server, self.stop = server, stop
        self.events = 0
        self.number = server.connect()

    def event(self):
        self.events += 1
        if self.events == self.stop:
            raise CrashedError

    def __call__(self, message, *files):
        number = self.server.post(self.number, message, *files)
        self.event()
        while self.server.asked and (self.number, number) not in self.server.replies:
            self.server.answer()
            self.event()
        return self.server.replies[self.number, number]

    def live(self):
        """Everything that there is to call."""
        server = self.server
        ashmem = m.RegisterPool("ashmem", SIZE * 3, 3, 0, must_map=True)
        pool, whole = self(ashmem, server.file()).pool, None
        whole = self(m.RegisterPool("ashmem", SIZE, 3, 0), server.file()).pool
        self(m.SupportedOperations(conv(KIND)))
        files = server.file(0), server.file(0)
        model = self(m.Prepare(conv(KIND), cache=m.CacheFiles((0,), (1,))), *files).model
        files = server.file(9), server.file(9)
        cached = self(m.PrepareFromCache(m.CacheFiles((0,), (1,))), *files).model
        token = self(m.Allocate((), (model,), (m.Role(0, 0),), (m.Role(0, 0),))).token
        self(m.CopyFrom(token, whole))
        places = Places(pool)
        request = places.request([places.buffer(token)], [places.pooled(SIZE)])
        assert status_of(self(m.Execute(model, request))) is NONE
        self(m.CopyTo(token, whole))
        other = self(m.Allocate((), (model,), (m.Role(0, 0),), ())).token
        self(m.CopyBetween(other, token))
        assert self(m.DescribeBuffer(other)).dimensions == KIND.dimensions
        self.live_fenced(model, request)
        self.live_again(model, request)
        for message in (m.Free(token), m.ReleaseModel(model), m.ReleaseModel(cached)):
            assert status_of(self(message)) is NONE
        self(m.UnregisterPool(pool))
        self(m.UnregisterPool(whole))

    def live_fenced(self, model, request):
        fences = self.server.fence(), self.server.fence()
        launched = self(m.ExecuteFenced(model, request, (0, 1)), *fences).execution
        for fence in fences:
            self.server.happen(ev.FenceChanged(fence.handle, is_ok=True))
            self.event()
        self.server.answer_all()
        self.event()
        assert self(m.GetExecutionInfo(launched)).status is NONE
        self(m.ReleaseExecution(launched))

    def live_again(self, model, request):
        created = self(m.CreateExecution(model, request)).execution
        assert status_of(self(m.RunExecution(created))) is NONE
        launched = self(m.RunExecutionFenced(created)).execution
        self.server.answer_all()
        self.event()
        self(m.ReleaseExecution(launched))
        self(m.ReleaseExecution(created))
        burst = self(m.OpenBurst(model)).burst
        assert self(m.OpenRing(0), self.server.file(m.RING_BYTES)) == Done()
        for _ in range(2):
            assert status_of(self(m.BurstExecute(burst, request, (5, -1)))) is NONE
        self(m.ReleaseSlot(burst, 5))
        self(m.CloseBurst(burst))


def live(stop):
    """A session that ends after so many events; whether it came to its end before."""
    server = FakeServer()
    witness = Client(server)
    session = Session(server, stop)
    is_whole = True
    try:
        session.live()
    except CrashedError:
        is_whole = False
    server.happen(ev.Disconnected(session.number))
    server.answer_all()
    assert witness.status(m.Free(1)) is IA
    server.happen(ev.Disconnected(witness.number))
    return server, session, is_whole


def test_a_session_to_its_end_leaves_nothing():
    server, session, is_whole = live(stop=0)
    assert is_whole
    assert session.events > 40
    assert server.is_clean()
    assert server.service.ledger.accounts.users == {}


@pytest.mark.parametrize("stop", range(1, live(stop=0)[1].events + 1))
def test_a_client_that_dies_leaves_nothing(stop):
    server, _, is_whole = live(stop)
    assert not is_whole
    assert server.is_clean()
    assert server.service.ledger.accounts.users == {}
