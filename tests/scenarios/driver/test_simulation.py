"""The whole service under a seed: clients that crash, answers out of order, fences that never come.

A failure prints its seed; `simulate(seed, steps)` replays it.
"""

import itertools
import random

import pytest

from tests.driver.fake_server import FakeServer, buffers_of
from tests.driver.small_models import NONE, Places, conv, status_of
from tightship.driver.protocol import messages as m
from tightship.driver.service import effects as fx
from tightship.driver.service import events as ev
from tightship.driver.types.attachment import FenceState
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.settings import Settings
from tightship.driver.types.status import ErrorStatus

KIND = ValueType(OperandType.TENSOR_FLOAT32, (4,))
MS = 1_000_000
SETTINGS = Settings()
TURNS = 2


class Actor:
    """A client that does anything, mostly with what it has."""

    def __init__(self, server, rng, user):
        self.server, self.rng = server, rng
        self.number = server.connect(user)
        self.posted, self.deadlines = {}, {}
        server.post(self.number, m.RegisterPool("ashmem", 4096, 3, 0), server.file())
        server.post(self.number, m.RegisterPool("ashmem", 16, 3, 0), server.file())
        server.post(self.number, m.Prepare(conv(KIND)))

    def owned(self, attribute):
        return getattr(self.server.service.ledger.connections[self.number], attribute)

    def one(self, attribute):
        return self.rng.choice([*self.owned(attribute)] * 8 + [self.rng.randrange(2**20)])

    def request(self):
        places = Places(self.one("pools"))
        rows = []
        for _ in range(2):
            in_buffer = self.owned("buffers") and self.rng.random() < 0.3
            rows.append(places.buffer(self.one("buffers")) if in_buffer else places.pooled(16))
        return places.request(rows[:1], rows[1:])

    def deadline(self):
        return self.rng.choice((-1, -1, self.server.now_ns + self.rng.randrange(40) * MS))

    def fences(self):
        states = [FenceState.PENDING] * 5 + [FenceState.SIGNALLED] * 2 + [FenceState.ERROR]
        return [self.server.fence(self.rng.choice(states)) for _ in range(self.rng.randrange(3))]

    def message(self):
        """A call and the files beside it."""
        rng, one = self.rng, self.one
        fences = self.fences()
        waits = tuple(range(len(fences)))
        deadline = self.deadline()
        burst_request = self.request()
        again = [call for number, call in self.server.repeats if number == self.number]
        if again and rng.random() < 0.2:
            return rng.choice(again), []
        if rng.random() < 0.3:
            return m.Execute(one("models"), self.request(), deadline_ns=deadline), []
        if rng.random() < 0.2:
            return m.ExecuteFenced(one("models"), self.request(), waits), fences
        slots = tuple(rng.choice((-1, 1, 2)) for _ in burst_request.pools)
        roles = (m.Role(0, 0),)
        return rng.choice(
            [
                (
                    m.RegisterPool("ashmem", 4096, 3, 0, must_map=rng.random() < 0.5),
                    [self.server.file()],
                ),
                (m.RegisterPool("ashmem", 4096, 3, 0), [self.server.file(100)]),
                (m.UnregisterPool(one("pools")), []),
                (m.SupportedOperations(conv(KIND)), []),
                (m.Prepare(conv(KIND), deadline_ns=deadline), []),
                (m.Prepare(conv(KIND), cache=m.CacheFiles((0,), (1,))), [self.server.file()] * 1),
                (
                    m.PrepareFromCache(m.CacheFiles((0,), (1,))),
                    [self.server.file(), self.server.file()],
                ),
                (m.ReleaseModel(one("models")), []),
                (m.Allocate((), (one("models"),), roles, roles), []),
                (m.Free(one("buffers")), []),
                (m.CopyFrom(one("buffers"), one("pools")), []),
                (m.CopyTo(one("buffers"), one("pools")), []),
                (m.CopyBetween(one("buffers"), one("buffers")), []),
                (m.DescribeBuffer(one("buffers")), []),
                (m.Execute(one("models"), self.request(), deadline_ns=deadline), []),
                (m.ExecuteFenced(one("models"), self.request(), waits, duration_ns=9 * MS), fences),
                (m.GetExecutionInfo(one("fenced")), []),
                (m.CreateExecution(one("models"), self.request()), []),
                (m.RunExecution(one("reusables"), deadline), []),
                (m.RunExecutionFenced(one("reusables"), waits, deadline), fences),
                (m.ReleaseExecution(one(rng.choice(("fenced", "reusables")))), []),
                (m.OpenBurst(one("models")), []),
                (m.BurstExecute(one("bursts"), burst_request, slots, deadline_ns=deadline), []),
                (m.ReleaseSlot(one("bursts"), rng.choice((1, 2))), []),
                (m.CloseBurst(one("bursts")), []),
                (m.OpenRing(0), [self.server.file(rng.choice((m.RING_BYTES, 9)))]),
            ]
        )

    def act(self):
        message, files = self.message()
        number = self.server.post(self.number, message, *files)
        self.posted[number] = message
        deadline_ns = getattr(message, "deadline_ns", -1)
        if deadline_ns >= 0:
            self.deadlines[number] = deadline_ns


class Steady:
    """A client that keeps the rules, and must never notice the others."""

    def __init__(self, server):
        self.server = server
        self.number = server.connect(user=99)
        self.replies = []
        pool = server.call(self.number, m.RegisterPool("ashmem", 4096, 3, 0), server.file()).pool
        model = server.call(self.number, m.Prepare(conv(KIND))).model
        places = Places(pool)
        request = places.request([places.pooled(16)], [places.pooled(16)])
        self.message = m.Execute(model, request)

    def act(self):
        self.server.post(self.number, self.message)


class Simulation:
    def __init__(self, seed):
        self.rng, self.lags = random.Random(seed), random.Random(seed)
        self.server = FakeServer(SETTINGS, seed=seed, permits=TURNS)
        self.steady = Steady(self.server)
        self.actors = [Actor(self.server, self.rng, user % 2) for user in range(3)]
        self.steady_runs = set()

    def step(self):
        choices = [self.act] * 9 + [self.answer] * 7 + [self.pass_time] * 2
        rare = self.rng.choice((self.change_fence, self.change_fence, self.pass_time, self.crash))
        self.rng.choice([*choices, rare, self.speak_nonsense])()
        self.check()

    def act(self):
        self.rng.choice([*self.actors, self.steady]).act()

    def answer(self):
        """Answer anything that was asked, well or badly; the steady client is served well."""
        if not self.server.asked:
            return
        index = self.rng.randrange(len(self.server.asked))
        asked = self.server.asked[index]
        is_steady = getattr(asked, "model", 0) == self.steady.message.model
        failures = (ErrorStatus.GENERAL_FAILURE, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
        bad = not is_steady and self.rng.random() < 0.2
        self.server.engine.status = self.rng.choice(failures) if bad else NONE
        self.server.answer(index)
        self.server.engine.status = NONE

    def pass_time(self):
        self.server.lag_ns = self.lags.choice((0, 0, MS, 20 * MS))
        self.server.advance(self.rng.choice((0, 1, 5, 20, 60)) * MS)

    def change_fence(self):
        if self.server.watched:
            handle = self.rng.choice(sorted(self.server.watched))
            self.server.happen(ev.FenceChanged(handle, self.rng.random() < 0.7))

    def crash(self):
        index = self.rng.randrange(len(self.actors))
        self.server.happen(ev.Disconnected(self.actors[index].number))
        self.actors[index] = Actor(self.server, self.rng, index % 2)

    def speak_nonsense(self):
        actor = self.rng.choice(self.actors)
        file = self.server.file()
        self.server.open_files.add(file.handle)
        number = self.server.count("calls")
        self.server.happen(ev.Malformed(actor.number, number, "no message", (file,)))
        assert self.server.replies[actor.number, number].status == ErrorStatus.INVALID_ARGUMENT

    def check(self):
        server = self.server
        assert sum(isinstance(asked, fx.Run) for asked in server.asked) <= TURNS
        uses = [buffers_of(asked) for asked in server.asked]
        for (read, written), (read_too, written_too) in itertools.combinations(uses, 2):
            assert not written & (read_too | written_too)
            assert not written_too & read
        server.check_repeats()
        for actor in self.actors:
            for number, deadline_ns in list(actor.deadlines.items()):
                if server.now_ns > deadline_ns + SETTINGS.grace_ns:
                    assert (actor.number, number) in server.replies, actor.posted[number]
                    del actor.deadlines[number]

    def finish(self):
        for actor in self.actors:
            self.server.happen(ev.Disconnected(actor.number))
        self.server.answer_all()
        replies = [sent.reply for sent in self.server.sent if sent.connection == self.steady.number]
        assert {status_of(reply) for reply in replies} == {NONE}
        self.server.happen(ev.Disconnected(self.steady.number))
        self.server.answer_all()
        assert self.server.is_clean()
        assert self.server.service.ledger.accounts.users == {}


def simulate(seed, steps):
    simulation = Simulation(seed)
    try:
        for _ in range(steps):
            simulation.step()
        simulation.finish()
    except BaseException as error:
        error.add_note(f"replay with simulate({seed}, {steps})")
        raise
    return simulation


@pytest.mark.parametrize("seed", range(12))
def test_nothing_leaks_hangs_or_disturbs_under_a_seed(seed):
    simulate(seed, 400)


def test_simulations_reach_every_call_with_success():
    succeeded, repeated_count = set(), 0
    for seed in range(76, 88):
        server = simulate(seed, 400).server
        repeated_count += server.counts["known"]
        succeeded |= {type(sent.reply).__name__ for sent in server.sent}
    assert succeeded >= {
        "Done",
        "Failed",
        "PoolRegistered",
        "Supported",
        "ModelPrepared",
        "Allocated",
        "Executed",
        "Launched",
        "ExecutionInfo",
        "ExecutionCreated",
        "BurstOpened",
        "BufferDescribed",
    }
    assert repeated_count > 100


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_nothing_leaks_hangs_or_disturbs_under_many_seeds(part):
    for seed in range(10_000 + 20 * part, 10_020 + 20 * part):
        simulate(seed, 1000)
