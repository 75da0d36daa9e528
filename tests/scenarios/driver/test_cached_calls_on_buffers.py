"""Runs on buffers that the server may repeat: those that find buffers as they leave them."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import (
    GF,
    IA,
    NONE,
    TYPES,
    Client,
    Places,
    conv,
    shaped,
    status_of,
)
from tightship.driver.protocol import messages as m
from tightship.driver.service import events as ev

REST = (32, 32, 8)
KIND = shaped(TYPES["float32"], 0, *REST)
ONE_BYTES = TYPES["float32"].size_bytes


class Recurrent:
    """A client of a model of any length, whose state is to go to and fro between two buffers."""

    def __init__(self, length=1):
        self.client = Client(FakeServer(permits=3))
        self.server = self.client.server
        self.model = self.client.model(conv(KIND))
        self.pool = self.client.pool()
        self.states = [self.client.buffer([self.model], [0], [0]) for _ in range(2)]
        self.to, self.fro = self.call(*self.states), self.call(*self.states[::-1])
        self.fill(length)

    def fill(self, length):
        self.server.engine.produced = (length, *REST)
        self.client.initialise(self.states[0], length * ONE_BYTES, (length, *REST))

    def request(self, read, written, length=1):
        places = Places(self.pool)
        read, written = [places.buffer(each, length, *REST) for each in (read, written)]
        return places.request([read], [written])

    def call(self, read, written, length=1):
        return m.Execute(self.model, self.request(read, written, length))

    def post(self, call):
        return self.server.post(self.client.number, call)

    def replied(self, number):
        return status_of(self.server.replies[self.client.number, number])

    @property
    def repeats(self):
        """Calls that the server may repeat now."""
        self.server.check_repeats()
        return [call for _, call in self.server.repeats if not self.server.paused]


@pytest.fixture
def setup():
    made = Recurrent()
    for call in (made.to, made.fro):
        assert made.client.status(call) is NONE
    return made


def test_both_permits_of_a_state_may_be_repeated(setup):
    for call in (setup.to, setup.fro, setup.to):
        assert setup.repeats == [setup.to, setup.fro]
        assert setup.client.status(call) is NONE


def test_a_state_in_a_burst_or_in_reusable_executions_may_be_repeated(setup):
    burst = setup.client(m.OpenBurst(setup.model)).burst
    permits = setup.request(*setup.states), setup.request(*setup.states[::-1])
    calls = [m.BurstExecute(burst, each, (-1,) * len(each.pools)) for each in permits]
    made = [setup.client(m.CreateExecution(setup.model, each)) for each in permits]
    calls += [m.RunExecution(each.execution) for each in made]
    for call in calls:
        assert setup.client.status(call) is NONE
    assert setup.repeats == calls


@pytest.mark.parametrize("which", [0, 1])
def test_nothing_is_repeated_once_a_buffer_is_given_back(setup, which):
    setup.client(m.Free(setup.states[which]))
    assert not setup.repeats
    assert setup.client.status(setup.to) is IA


@pytest.mark.parametrize("length", [1, 2])
def test_nothing_is_repeated_once_a_buffer_is_copied_into(setup, length):
    setup.fill(length)
    assert not setup.repeats
    assert setup.client.status(setup.to) is (NONE if length == 1 else IA)


def test_nothing_is_repeated_once_a_buffer_is_filled_from_another(setup):
    assert setup.client.status(m.CopyBetween(setup.states[1], setup.states[0])) is NONE
    assert not setup.repeats


def test_nothing_is_repeated_of_a_buffer_while_a_copy_fills_it(setup):
    number = setup.post(m.CopyBetween(setup.states[1], setup.states[0]))
    assert setup.client.status(setup.fro) is GF
    assert not setup.repeats
    assert setup.replied(number) is NONE


def test_a_copy_that_fails_ends_repeats_and_leaves_nothing_to_read(setup):
    assert setup.client.status(m.CopyFrom(setup.states[0], setup.client.pool(1))) is IA
    assert not setup.repeats
    assert setup.client.status(setup.to) is GF
    assert setup.client.status(setup.fro) is NONE
    assert setup.client.status(setup.to) is NONE
    assert setup.repeats == [setup.fro, setup.to]


def test_a_run_that_fails_ends_repeats_of_what_it_was_to_write(setup):
    setup.server.engine.status = GF
    assert setup.client.status(setup.to) is GF
    assert not setup.repeats
    setup.server.engine.status = NONE
    assert setup.client.status(setup.fro) is GF


def test_a_run_that_fails_elsewhere_ends_nothing_of_another_model(setup):
    other = setup.client.model(conv(KIND))
    apart = setup.client.buffer([other], [0], [0])
    for call in (setup.to, setup.fro):
        assert setup.client.status(call) is NONE
    places = Places(setup.pool)
    ends = [places.pooled(ONE_BYTES, 1, *REST)], [places.buffer(apart)]
    setup.server.engine.status = GF
    assert setup.client.status(m.Execute(other, places.request(*ends))) is GF
    assert setup.repeats == [setup.to, setup.fro]


def test_an_output_of_other_dimensions_ends_repeats(setup):
    places = Places(setup.pool)
    ends = [places.pooled(2 * ONE_BYTES, 2, *REST)], [places.buffer(setup.states[1])]
    wider = m.Execute(setup.model, places.request(*ends))
    setup.server.engine.produced = (2, *REST)
    assert setup.client.status(wider) is NONE
    assert setup.repeats == [wider]
    assert setup.client.status(setup.fro) is IA


def test_a_buffer_that_was_otherwise_in_between_ends_repeats(setup):
    """The buffer's memory may have moved since."""
    elsewhere = setup.client.buffer([setup.model], outputs=[0])
    holds = setup.call(setup.states[0], elsewhere)
    for call in (setup.to, setup.fro):
        assert setup.client.status(call) is NONE
    long = setup.post(holds)
    for length in (2, 1):
        places = Places(setup.pool)
        argument = places.pooled(length * ONE_BYTES, length, *REST)
        request = places.request([argument], [places.buffer(setup.states[1])])
        number = setup.post(m.Execute(setup.model, request))
        setup.server.engine.produced = (length, *REST)
        setup.server.answer(1)
        assert setup.replied(number) is NONE
        assert not setup.repeats
    setup.server.answer()
    assert setup.replied(long) is NONE
    assert setup.to not in setup.repeats
    assert holds in setup.repeats


def test_nothing_is_repeated_beside_a_run_that_has_a_buffer(setup):
    number = setup.post(setup.to)
    assert not setup.repeats
    assert setup.client.status(setup.fro) is GF
    assert setup.replied(number) is NONE
    assert not setup.repeats
    assert setup.client.status(setup.to) is GF


def test_who_has_an_answer_may_have_the_next_call_repeated(setup):
    seen, plain = [], setup.server.deliver
    setup.server.deliver = lambda sent: seen.append(bool(setup.server.paused)) or plain(sent)
    setup.client(setup.to)
    assert seen == [False]


def test_nothing_is_repeated_before_the_last_of_several_has_ended(setup):
    third = setup.client.buffer([setup.model], outputs=[0])
    reader = setup.call(setup.states[0], third)
    for call in (setup.to, setup.fro):
        assert setup.client.status(call) is NONE
    numbers = [setup.post(each) for each in (setup.to, reader)]
    setup.server.answer()
    assert not setup.repeats
    setup.server.answer()
    assert [setup.replied(each) for each in numbers] == [NONE, NONE]
    assert setup.repeats == [setup.to, setup.fro, reader]


def test_nothing_is_repeated_while_a_fenced_run_waits(setup):
    fence = setup.server.fence()
    setup.client(m.ExecuteFenced(setup.model, setup.to.request, (0,)), fence)
    assert setup.client.status(setup.to) is NONE
    assert not setup.repeats
    setup.server.happen(ev.FenceChanged(fence.handle, is_ok=True))
    assert not setup.repeats
    setup.server.answer_all()
    assert setup.repeats == [setup.to]


def test_a_fence_that_fails_ends_repeats_of_what_was_to_be_written(setup):
    fence = setup.server.fence()
    setup.client(m.ExecuteFenced(setup.model, setup.to.request, (0,)), fence)
    assert setup.client.status(setup.to) is NONE
    setup.server.happen(ev.FenceChanged(fence.handle, is_ok=False))
    assert not setup.repeats
    assert setup.client.status(setup.fro) is GF


@pytest.mark.parametrize("which", [0, 1])
def test_a_run_whose_buffer_is_given_back_meanwhile_may_not(setup, which):
    number = setup.post(setup.to)
    setup.client(m.Free(setup.states[which]))
    assert setup.replied(number) is NONE
    assert not setup.repeats


def test_a_run_whose_input_is_emptied_meanwhile_may_not(setup):
    number = setup.post(setup.to)
    assert setup.client.status(m.CopyFrom(setup.states[0], setup.client.pool(1))) is IA
    assert setup.replied(number) is NONE
    assert not setup.repeats


def test_a_client_that_goes_while_nothing_is_repeated_leaves_nothing(setup):
    setup.post(setup.to)
    setup.server.happen(ev.Disconnected(setup.client.number))
    setup.server.answer_all()
    assert setup.server.is_clean()
