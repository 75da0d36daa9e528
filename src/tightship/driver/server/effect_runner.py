"""Execution of the service's effects on memory, models and fences."""

import errno
import os
import time
from contextlib import suppress
from functools import partial

from tightship._core import QueuedRuns, RequestMetrics, RunPermits, StopFlag
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.reserve import reserved
from tightship.driver.models.device_buffers import DeviceBuffers
from tightship.driver.models.model_cache import ModelCache
from tightship.driver.models.named import Named
from tightship.driver.models.operand_models import find_supported
from tightship.driver.models.registry import Models
from tightship.driver.models.running import Runs
from tightship.driver.permit_names import Names, named_model, own_model
from tightship.driver.protocol.channel import close_all
from tightship.driver.protocol.replies import Failed, Launched, Reply
from tightship.driver.server.accepting import is_reserved
from tightship.driver.server.listening import PARTS_LEFT
from tightship.driver.server.measuring import measure
from tightship.driver.server.workers import Job, Workers
from tightship.driver.service import effects as fx
from tightship.driver.service.events import (
    BufferAllocated,
    CopyFinished,
    Event,
    PoolMapped,
    RunFinished,
)
from tightship.driver.types.pools import Pool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError
from tightship.model.bound_run import BoundRun

WORKERS_MIN = 2
"""Fewest threads for long jobs: a client occupies one, and others must get on meanwhile."""


class EffectRunner:
    """Memory, models and fences of a driver.

    Attributes:
        workers: Threads for long jobs, whose events are for the service.
        next_permit: Returns a queued run that has its permit; None if there is none.
    """

    def __init__(
        self,
        named: Named,
        cache: ModelCache | None,
        permits: RunPermits,
        slow: FileProber,
        bell: int = -1,
    ) -> None:
        """Run at most `permits` runs at once; as many threads have kernels of clients' models.

        The eventfd `bell` is signalled for each permit that a queued run gets.
        """
        self._queue = QueuedRuns(permits, bell)
        self.next_permit = self._queue.next
        self._waiting: dict[int, tuple[RequestMetrics, int]] = {}
        self.workers = Workers(max(WORKERS_MIN, permits.count))
        self._slow = slow
        self._mappings = Mappings(slow)
        self._models = Models(self._mappings, named, cache, permits.count)
        self._buffers = DeviceBuffers()
        self._runs = Runs(self._models, self._mappings, self._buffers)
        self._stops: dict[int, StopFlag] = {}
        self._prepares: dict[int, StopFlag] = {}
        self._fences: dict[int, int] = {}

    def carry_out(self, effect: fx.Effect, client: int = 0) -> None:
        """Carry out an effect for a client, or start a thread on it if it takes long."""
        match effect:
            case fx.CancelPermit():
                self.leave_permit(effect.execution)
            case fx.StopRun():
                self._stops[effect.execution].set()
            case fx.StopPrepare():
                self._stop_prepare(effect.model)
            case fx.PrepareModel():
                stop = self._prepares[effect.model] = StopFlag()
                self.workers.do(partial(self._prepare, effect, stop), client, effect.priority)
            case fx.DropPool():
                self._runs.forget_pool(effect.pool)
                self._mappings.drop(effect.pool)
            case fx.DropBuffer():
                self._runs.forget_buffer(effect.token)
                self._buffers.drop(effect.token)
            case fx.SignalFence():
                self._signal(effect)
            case _:
                job = self._job(effect)
                if job is not None:
                    self.workers.do(job, client)

    def _job(self, effect: fx.Effect) -> Job | None:
        match effect:
            case fx.DropModel():
                self._runs.forget_model(effect.model)
                return partial(self._models.drop, effect.model)
            case fx.FindSupported():
                return partial(find_supported, effect, self._mappings)
            case _:
                return self._memory_job(effect)

    def _memory_job(self, effect: fx.Effect) -> Job | None:
        match effect:
            case fx.MapPool():
                return partial(self._map, effect.pool)
            case fx.AllocateBuffer():
                return partial(self._allocate, effect)
            case fx.CopyBuffer() | fx.CopyBuffers():
                return partial(self._copy, effect)
            case fx.Measure():
                return partial(measure, effect, self._mappings, self._models, self._slow)
        return None

    def close(self) -> None:
        """End the threads and isolated processes; nothing may be running."""
        self.workers.close()
        self._mappings.close()

    def await_permit(self, asked: fx.AwaitPermit, user: int) -> bool:
        """Queue a run of a user's client; return whether it has its permit at once."""
        metrics, names = self.metrics(asked.model), self.names(asked.model, asked.connection, user)
        self._waiting[asked.execution] = metrics, time.monotonic_ns()
        return self._queue.join(asked.execution, names, asked.priority, metrics)

    def leave_permit(self, execution: int) -> None:
        """Remove a run from the queue."""
        metrics, asked_ns = self._waiting.pop(execution)
        metrics.fail(time.monotonic_ns() - asked_ns)
        self._queue.leave(execution)

    def names(self, model: int, connection: int, user: int) -> Names:
        """Return the groups by which runs of a client alternate."""
        name, account, client = self._models.name(model), f"user {user}", f"native:{connection}"
        if name is None:
            return own_model(account, client, model)
        return named_model(name, account, client, model)

    def begin(self, run: fx.Run) -> None:
        """Create the flag that stops a run."""
        self._stops[run.execution] = StopFlag()

    def run(self, run: fx.Run) -> RunFinished:
        """Run a model on its permit, in any thread; once for each `begin`."""
        metrics, asked_ns = self._waiting.pop(run.execution)
        start_ns = time.monotonic_ns()
        try:
            finished = self._runs.run(run, self._stops[run.execution])
        finally:
            self._queue.give_back(run.execution)
        end_ns = time.monotonic_ns()
        if finished.status is ErrorStatus.NONE:
            metrics.succeed((start_ns - asked_ns, 0, end_ns - start_ns, 0))
        else:
            metrics.fail(end_ns - asked_ns)
        return finished

    def metrics(self, model: int) -> RequestMetrics:
        """Return the request metrics of a model."""
        return self._models.metrics(model)

    def often(self, run: fx.Run) -> BoundRun | None:
        """Return the cached run of a frequent request; None for others."""
        return self._runs.often(run)

    def forget(self, ended: RunFinished) -> None:
        """Remove the flag of a run that has ended."""
        del self._stops[ended.execution]

    def with_fence(self, reply: Launched) -> tuple[Reply, tuple[int, ...]]:
        """Return the reply to a launch with its fence, or a refusal if no descriptor is left."""
        try:
            return reply, (self.new_fence(reply.execution),)
        except OSError:
            short = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
            return Failed(short, "No descriptor is left for a fence."), ()

    def new_fence(self, execution: int) -> int:
        """Return the read end of a pipe; the driver keeps the other, which closes if it dies.

        Raises:
            OSError: Only reserved descriptors are left.
        """
        ends = os.pipe2(os.O_CLOEXEC)
        if is_reserved(max(ends) + 2 * len(self._fences), PARTS_LEFT):
            close_all(ends)
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        read_end, self._fences[execution] = ends
        return read_end

    def _stop_prepare(self, model: int) -> None:
        stop = self._prepares.get(model)  # its end may not have been reported yet
        if stop is not None:
            stop.set()

    def _prepare(self, effect: fx.PrepareModel, stop: StopFlag) -> Event:
        try:
            return self._models.prepare(effect, stop)
        finally:
            self._prepares.pop(effect.model)

    def _signal(self, effect: fx.SignalFence) -> None:
        file = self._fences.pop(effect.execution, None)
        if file is None:
            return
        if effect.is_ok:
            with suppress(BrokenPipeError):
                os.write(file, b"\0")
        os.close(file)

    def _map(self, pool: Pool) -> Event:
        try:
            self._mappings.check(pool)
        except (DriverError, MemoryError):
            return PoolMapped(pool.identifier, is_mapped=False)
        return PoolMapped(pool.identifier, is_mapped=True)

    def _allocate(self, asked: fx.AllocateBuffer) -> Event:
        try:
            with reserved():
                self._buffers.room(asked.token, asked.value_type.size_bytes)
                if self._models.take_image(asked):
                    self._buffers.have_channels_last(asked.token)
        except (MemoryError, OSError):
            return BufferAllocated(asked.token, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
        return BufferAllocated(asked.token, ErrorStatus.NONE)

    def _copy(self, asked: fx.CopyBuffer | fx.CopyBuffers) -> Event:
        buffers = self._buffers
        try:
            if isinstance(asked, fx.CopyBuffers):
                buffers.copy(asked.token, asked.source, asked.dimensions)
            elif asked.is_into_buffer:
                data = self._mappings.whole(asked.pool)
                buffers.fill(asked.token, data, asked.dimensions)
            else:
                self._mappings.store(asked.pool, buffers.content(asked.token, asked.dimensions))
        except DriverError:
            return CopyFinished(asked.copy, ErrorStatus.INVALID_ARGUMENT)
        except (MemoryError, OSError):
            return CopyFinished(asked.copy, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
        return CopyFinished(asked.copy, ErrorStatus.NONE)
