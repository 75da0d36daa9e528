"""The door of the state machine: any call is answered once, and nothing that came stays open."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, TYPES, Client, Places, conv
from tests.driver.strategies import calls
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Failed, Launched, OutputShape, PoolRegistered
from tightship.driver.service import events as ev
from tightship.driver.service.service import Service
from tightship.driver.types.settings import Settings
from tightship.driver.types.status import ErrorStatus

KIND = TYPES["float32"]


class Zeros(random.Random):
    """Chooses the plainest order: identifiers count from 1."""

    def getrandbits(self, _):
        return 0


def client_with_everything():
    """A client whose pools, models, buffers, executions and bursts have small numbers."""
    server = FakeServer()
    server.service = Service(Settings(), Zeros())
    client = Client(server)
    model = client.model(conv(KIND))
    token = client.buffer((model,), inputs=(0,), outputs=(0,))
    places = Places(client.pool())
    request = places.request([places.pooled(KIND.size_bytes)], [places.buffer(token)])
    client(m.CreateExecution(model, request))
    client(m.ExecuteFenced(model, request))
    client(m.OpenBurst(model))
    return client


small = st.one_of(st.integers(-2, 12), st.sampled_from((64, 4096, 32768, 2**31, 2**63 - 1)))
near = [
    st.builds(kind, **dict.fromkeys(names, small))
    for kind, names in {
        m.UnregisterPool: ["pool"],
        m.ReleaseModel: ["model"],
        m.Free: ["token"],
        m.CopyFrom: ["token", "pool"],
        m.CopyTo: ["token", "pool"],
        m.CopyBetween: ["token", "source"],
        m.DescribeBuffer: ["token"],
        m.Execute: ["model", "deadline_ns", "loop_timeout_ns"],
        m.ExecuteFenced: ["model", "deadline_ns", "duration_ns"],
        m.CreateExecution: ["model"],
        m.RunExecution: ["execution", "deadline_ns"],
        m.RunExecutionFenced: ["execution", "duration_ns"],
        m.GetExecutionInfo: ["execution"],
        m.ReleaseExecution: ["execution"],
        m.BurstExecute: ["burst"],
        m.ReleaseSlot: ["burst", "slot"],
        m.CloseBurst: ["burst"],
    }.items()
]
anything = st.one_of(calls, *near)


@settings(max_examples=60)
@given(st.lists(anything, max_size=6))
def test_any_calls_are_answered_once_each_and_leave_nothing(messages):
    client = client_with_everything()
    for message in messages:
        before = set(client.server.open_files)
        reply = client(message, client.server.file(), client.server.file())
        assert reply is not None
        assert isinstance(reply, PoolRegistered) or client.server.open_files <= before
    client.server.happen(ev.Disconnected(client.number))
    client.server.answer_all()
    assert client.server.is_clean()


@pytest.mark.slow
@settings(max_examples=5000)
@given(st.lists(anything, max_size=10))
def test_very_many_calls_are_answered_once_each_and_leave_nothing(messages):
    client = client_with_everything()
    for message in messages:
        assert client(message, client.server.file(), client.server.file()) is not None
    client.server.happen(ev.Disconnected(client.number))
    client.server.answer_all()
    assert client.server.is_clean()


def test_what_is_offered_is_said():
    said = client_with_everything()(m.Capabilities())
    assert said.features == ("buffer_copies", "call_ring", "memory_domains", "named_files")


def test_a_client_that_is_not_there_is_not_answered():
    server = FakeServer()
    assert server.call(5, m.Capabilities(), server.file()) is None
    server.happen(ev.Disconnected(5))
    assert not server.open_files


def test_bytes_that_are_no_call_are_answered_and_their_files_closed():
    server = FakeServer()
    connection = server.connect()
    file = server.file()
    server.open_files.add(file.handle)
    server.happen(ev.Malformed(connection, 9, "7 bytes are left.", (file,)))
    assert server.replies[connection, 9] == Failed(IA, "7 bytes are left.")
    assert not server.open_files


def test_an_answer_to_nothing_is_ignored():
    client = client_with_everything()
    count = len(client.server.sent)
    for answer in (
        ev.PoolMapped(99, is_mapped=True),
        ev.SupportFound(99, NONE),
        ev.PrepareFinished(99, NONE),
        ev.BufferAllocated(99, NONE),
        ev.CopyFinished(99, NONE),
        ev.RunFinished(99, NONE, (OutputShape((1,)),)),
        ev.FenceChanged(99, is_ok=True),
    ):
        client.server.happen(answer)
    assert len(client.server.sent) == count


def test_a_run_is_answered_once_though_the_server_says_it_twice():
    client = client_with_everything()
    places = Places(client.pool())
    request = places.request([places.pooled(KIND.size_bytes)], [places.pooled(KIND.size_bytes)])
    client.server.post(client.number, m.Execute(1, request))
    execution = client.server.asked[0].execution
    client.server.answer_all()
    count = len(client.server.sent)
    client.server.happen(ev.RunFinished(execution, GF))
    assert len(client.server.sent) == count


def test_errors_of_the_server_pass_through():
    client = client_with_everything()
    for status in (ErrorStatus.DEVICE_UNAVAILABLE, ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT):
        client.server.engine.status = status
        assert client.status(m.Prepare(conv(KIND))) is status
        assert client.status(m.SupportedOperations(conv(KIND))) is status


def test_the_fence_is_made_before_it_is_signalled():
    """Even if the execution cannot begin: the answer with the fence is the first effect."""
    client = client_with_everything()
    server = client.server
    token = client.buffer((1,), outputs=(0,))
    filled, places = client.pool(KIND.size_bytes), Places(client.pool())
    server.post(client.number, m.CopyFrom(token, filled))
    request = places.request([places.pooled(KIND.size_bytes)], [places.buffer(token)])
    number = server.post(client.number, m.ExecuteFenced(1, request))
    launched = server.replies[client.number, number]
    assert isinstance(launched, Launched)
    assert server.fences[launched.execution] is False
