"""A server without an operating system: counts what the service has it open and close."""

import random
from collections import deque

from tightship._core import QueuedRuns, RequestMetrics, RunPermits
from tightship.driver.permit_names import own_model
from tightship.driver.protocol.replies import Failed, Launched, ModelPrepared, OutputShape, Timing
from tightship.driver.service import effects as fx
from tightship.driver.service import events as ev
from tightship.driver.service.service import Service
from tightship.driver.types.attachment import Attachment, FenceState
from tightship.driver.types.dimensions import combine
from tightship.driver.types.operand_type import size_bytes
from tightship.driver.types.settings import Settings
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus

NONE = ErrorStatus.NONE


class FakeEngine:
    """Runs nothing; says what a run gives.

    Attributes:
        produced: Dimensions of outputs that neither model nor request know.
        status: With which everything ends.
    """

    def __init__(self):
        self.produced = (1,)
        self.status = NONE
        self.unmappable = set()

    def produce(self, dimensions):
        return combine(dimensions, self.produced)

    def run(self, run, types):
        if self.status is not NONE:
            return ev.RunFinished(run.execution, self.status)
        if any(arg.pool and arg.pool.handle in self.unmappable for arg in run.inputs):
            return ev.RunFinished(run.execution, ErrorStatus.GENERAL_FAILURE)
        shapes = tuple(map(self.shape, run.outputs, types))
        fits = all(shape.is_sufficient for shape in shapes)
        status = NONE if fits else ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
        return ev.RunFinished(run.execution, status, shapes, Timing(20, 10))

    def shape(self, argument, value_type):
        dimensions = argument.dimensions
        if not value_type.is_scalar and (not dimensions or 0 in dimensions):
            dimensions = self.produce(dimensions)
        needed = size_bytes(value_type.operand_type, dimensions)
        fits = argument.location is None or needed <= argument.location.length_bytes
        return OutputShape(dimensions, fits)


def pools_of(asked):
    """Pools that something which was asked for needs."""
    match asked:
        case fx.Run():
            return [each.pool for each in (*asked.inputs, *asked.outputs) if each.pool]
        case fx.MapPool() | fx.CopyBuffer():
            return [asked.pool]
    return getattr(asked, "pools", ())


def buffers_of(asked):
    """Tokens of the buffers that something reads, and of those that it writes."""
    match asked:
        case fx.Run():
            ends = asked.inputs, asked.outputs
            read, written = ({each.token for each in row if each.token} for row in ends)
            return read, written
        case fx.CopyBuffer():
            row = {asked.token}
            return (set(), row) if asked.is_into_buffer else (row, set())
        case fx.CopyBuffers():
            return {asked.source}, {asked.token}
    return set(), set()


def check_repeated(known, reply):
    """Check that the service's reply equals the server's cached one, except for a lack of room."""
    if isinstance(reply, Failed):
        assert (
            reply.message == "The execution failed."
            or " executions were asked for" in reply.message
        ), reply
    else:
        assert (reply.status, reply.shapes) == (known.status, known.shapes)


class FakeServer:
    """Carries effects out; what the service asked for is answered when `answer` is called."""

    def __init__(self, settings=None, engine=None, seed=0, permits=1):
        self.permits, self.metrics = RunPermits(permits), RequestMetrics()
        self.queue = QueuedRuns(self.permits, -1)
        self.lag_ns = 0
        self.service = Service(settings or Settings(), random.Random(seed))
        self.engine = engine or FakeEngine()
        self.now_ns = 1_000
        self.open_files = set()
        self.models, self.buffers = {}, set()
        self.refused = []
        self.fences, self.watched = {}, set()
        self.asked = deque()
        self.repeats, self.known = {}, {}
        self.paused = set()
        self.rings = set()
        self.stopped = set()
        self.replies = {}
        self.sent = []
        self.counts = {"files": 0, "connections": 0, "calls": 0, "known": 0}

    def count(self, what):
        self.counts[what] += 1
        return self.counts[what]

    def connect(self, user=0):
        connection = self.count("connections")
        self.happen(ev.Connected(Caller(connection, user)))
        return connection

    def file(self, size_bytes=1 << 20, **facts):
        """A sealed memfd, unless said otherwise, that no other process has."""
        handle = self.count("files")
        known = {"identity": (1, handle), "is_shrink_sealed": True} | facts
        return Attachment(handle, size_bytes, **known)

    def fence(self, state=FenceState.PENDING):
        return self.file(0, fence=state, is_regular=False)

    def call(self, connection, message, *files):
        """The answer, once the server has done what it takes; None if it still waits."""
        number = self.post(connection, message, *files)
        self.answer_all()
        return self.replies.pop((connection, number), None)

    def post(self, connection, message, *files):
        """Send a call; its number."""
        number = self.count("calls")
        self.open_files |= {file.handle for file in files}
        if not files and connection not in self.paused and (connection, message) in self.repeats:
            self.known[connection, number] = self.repeats[connection, message].reply
            self.counts["known"] += 1
        self.happen(ev.Received(connection, number, message, files))
        return number

    def answer_all(self):
        while self.asked:
            self.answer()

    def answer(self, index=0):
        """Answer one thing that was asked."""
        self.asked.rotate(-index)
        asked = self.asked.popleft()
        self.asked.rotate(index)
        if isinstance(asked, fx.Run):
            self.queue.give_back(asked.execution)
        self.happen(self.said(asked))

    def said(self, asked):  # noqa: PLR0911 - an answer for each question
        status = self.engine.status
        match asked:
            case fx.MapPool():
                return ev.PoolMapped(
                    asked.pool.identifier, asked.pool.handle not in self.engine.unmappable
                )
            case fx.FindSupported():
                found = tuple(True for _ in asked.model.main.operations)
                return ev.SupportFound(asked.query, status, found)
            case fx.PrepareModel():
                types = getattr(self.engine, "types", ((), ()))
                return ev.PrepareFinished(asked.model, status, *types)
            case fx.AllocateBuffer():
                return ev.BufferAllocated(asked.token, status)
            case fx.CopyBuffer() | fx.CopyBuffers():
                return ev.CopyFinished(asked.copy, status)
            case fx.Run():
                return self.engine.run(asked, self.models[asked.model])
        return ev.Measured(asked.query, status, len(asked.snapshot.clients))

    def advance(self, duration_ns):
        """Let time pass, with a tick whenever the service has asked for one."""
        stop_ns = self.now_ns + duration_ns
        while (next_ns := self.service.next_ns()) is not None and next_ns <= stop_ns:
            self.now_ns = max(next_ns, self.now_ns)
            self.happen(ev.Tick())
        self.now_ns = stop_ns

    def happen(self, event):
        if isinstance(event, ev.Disconnected):
            self.paused.discard(event.connection)
        for effect in self.service.handle(event, self.now_ns):
            if isinstance(effect, fx.CacheCall):
                self.repeats[effect.connection, effect.call] = effect
            elif isinstance(effect, fx.ForgetCalls):
                self.forget_calls(effect)
            elif isinstance(effect, fx.PauseCalls):
                assert effect.connection not in self.paused
                self.paused.add(effect.connection)
            elif isinstance(effect, fx.ResumeCalls):
                self.paused.remove(effect.connection)
            elif isinstance(effect, fx.AttendRing):
                assert effect.handle in self.open_files
                assert effect.connection not in self.rings
                self.rings.add(effect.connection)
            else:
                self.perform(effect)
        while (execution := self.queue.next()) is not None:
            self.tell_permit(execution)

    def tell_permit(self, execution):
        """Time may have passed since the turn came."""
        self.now_ns += self.lag_ns
        self.happen(ev.PermitGranted(execution))

    def await_permit(self, asked):
        """Queue for a permit under the client's own names: every client has its own models."""
        user = self.service.ledger.connections[asked.connection].caller.user
        names = own_model(f"user {user}", str(asked.connection), asked.model)
        if self.queue.join(asked.execution, names, asked.priority, self.metrics):
            self.tell_permit(asked.execution)

    def perform(self, effect):
        match effect:
            case fx.Send():
                self.deliver(effect)
            case fx.CloseFile():
                self.open_files.remove(effect.handle)
                self.watched.discard(effect.handle)
            case fx.DropPool():
                assert effect.pool not in [pool for each in self.asked for pool in pools_of(each)]
                self.open_files.remove(effect.pool.handle)
            case fx.SignalFence():
                assert self.fences[effect.execution] is None
                self.fences[effect.execution] = effect.is_ok
            case fx.WatchFence():
                assert effect.handle in self.open_files
                self.watched.add(effect.handle)
            case fx.DropBuffer():
                self.buffers.remove(effect.token)
            case fx.DropModel():
                assert effect.model not in [getattr(each, "model", 0) for each in self.asked]
                self.models.pop(effect.model, None)
            case fx.StopRun():
                assert effect.execution not in self.stopped
                self.stopped.add(effect.execution)
            case fx.StopPrepare() | fx.CloseConnection():
                self.refused.append(effect)
            case _:
                self.ask(effect)

    def forget_calls(self, ended):
        """Each ends something; calls that wait may find buffers otherwise than a repeat did."""
        self.known = {key: each for key, each in self.known.items() if key[0] != ended.connection}
        gone = [
            key
            for key, each in self.repeats.items()
            if each.connection == ended.connection and ended.session in {0, each.session}
        ]
        assert gone
        for key in gone:
            del self.repeats[key]

    def check_repeats(self):
        """Check that a repeatable run leaves buffers as they are, and disturbs no client."""
        for may in self.repeats.values():
            if may.connection in self.paused:
                continue
            buffers = self.service.ledger.connections[may.connection].buffers
            read = [(each.token, each.dimensions) for each in may.run.inputs if each.token]
            tokens = [each.token for each in may.run.outputs]
            made = [each.dimensions for each in may.reply.shapes]
            written = [row for row in zip(tokens, made, strict=True) if row[0]]
            for token, dimensions in (*read, *written):
                buffer = buffers[token]
                assert buffer.is_initialised
                assert buffer.dimensions == dimensions
                assert not buffer.is_written
            assert not any(buffers[token].reader_count for token, _ in written)

    def ask(self, effect):
        match effect:
            case fx.AwaitPermit():
                self.await_permit(effect)
                return
            case fx.CancelPermit():
                self.queue.leave(effect.execution)
                return
            case fx.Run():
                ledger = self.service.ledger
                assert ledger.executions[effect.execution].connection in ledger.connections
                assert not 0 <= effect.deadline_ns <= self.now_ns
            case fx.AllocateBuffer():
                self.buffers.add(effect.token)
        self.asked.append(effect)

    def deliver(self, sent):
        self.sent.append(sent)
        assert sent.connection in self.service.ledger.connections
        assert (sent.connection, sent.number) not in self.replies
        self.replies[sent.connection, sent.number] = sent.reply
        known = self.known.pop((sent.connection, sent.number), None)
        if known is not None:
            check_repeated(known, sent.reply)
        match sent.reply:
            case Launched():
                self.fences[sent.reply.execution] = None
            case ModelPrepared():
                self.models[sent.reply.model] = sent.reply.outputs

    def is_clean(self):
        """Check that nothing of any client is left."""
        ledger = self.service.ledger
        return not (
            self.open_files
            or self.models
            or self.buffers
            or self.watched
            or self.repeats
            or self.paused
            or ledger.executions
            or ledger.waiting
            or ledger.watchers
            or len(ledger.timers)
            or any(ended is None for ended in self.fences.values())
            or self.permits.waiting_count
            or not self.permits.is_free
        )
