"""Repeated calls, answered by the native core as far as the service allows."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tightship._core import CallCache, NativeContext, RequestMetrics, RunPermits, StopFlag
from tightship.driver.permit_names import Names
from tightship.driver.protocol.codec import encode, encode_reply
from tightship.driver.service import effects as fx
from tightship.driver.service.effects import CacheCall
from tightship.model.bound_run import BoundRun

CallCacheEffect = fx.ForgetCalls | fx.PauseCalls | fx.ResumeCalls | fx.AttendRing

KEPT_MAX = 64
"""Calls remembered for a connection; one more clears them."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """Everything that a repeated run uses.

    Attributes:
        context: Native form of a run that needs neither arena nor Python.
        call: Python form of other runs.
    """

    session: int
    stop: StopFlag
    run: BoundRun
    context: NativeContext | None
    call: Callable[[], None]
    metrics: RequestMetrics


class ServerCallCache:
    """Calls that the native core answers, by connection; many threads may wait in `next`."""

    def __init__(self, calls: int, permits: RunPermits, polling: int = 0) -> None:
        """Watch connections at the epoll descriptor `calls`, for one event at a time.

        A run takes one of `permits`. Up to `polling` of the threads in `next` poll rings for a
        while instead.
        """
        self._native = CallCache(calls, permits)
        self._native.set_polling(polling)
        self._kept: dict[int, dict[bytes, _Kept]] = {}
        self.open, self.next = self._native.open, self._native.next
        self.watch, self.watch_for = self._native.watch, self._native.watch_for
        self.pause, self.resume = self._native.pause, self._native.resume

    def remember(
        self, file: int, may: CacheCall, run: BoundRun, metrics: RequestMetrics, names: Names
    ) -> None:
        """Answer a call on a connection from now on; without Python if it needs no arena.

        Args:
            file: Descriptor of the connection.
            may: The call and its reply.
            run: Run of the call.
            metrics: Metrics of successful runs.
            names: Groups by which its runs alternate.
        """
        kept = self._kept.setdefault(file, {})
        call, stop = encode(may.call, 0), StopFlag()
        if call in kept:
            return
        if len(kept) == KEPT_MAX:
            self.forget(file, 0)
            kept = self._kept[file] = {}
        both, repeat = (call, encode_reply(may.reply, 0)), partial(run.run, stop)
        alone = run.alone()
        kept[call] = _Kept(may.session, stop, run, alone and alone[0], repeat, metrics)
        if alone is None:
            self._native.remember_call(file, may.session, both, repeat, metrics, names)
        else:
            self._native.remember(file, may.session, both, *alone, stop, metrics, names)

    def carry_out(self, file: int, effect: CallCacheEffect) -> None:
        """Carry out an effect about the calls of a connection."""
        match effect:
            case fx.ForgetCalls():
                self.forget(file, effect.session)
            case fx.PauseCalls():
                self.pause(file)
            case fx.ResumeCalls():
                self.resume(file)
            case fx.AttendRing():
                self.open_ring(file, effect.handle)

    def close(self, file: int) -> None:
        """Forget a connection that ends."""
        self.forget(file, 0)
        self._native.close(file)

    def open_ring(self, file: int, memory: int) -> None:
        """Accept calls of a connection through a ring, if its file can be mapped."""
        with suppress(RuntimeError):
            self._native.open_ring(file, memory)

    def forget(self, file: int, session: int) -> None:
        """End the repeats of a session, or all if it is 0; waits for one that runs."""
        kept = self._kept.get(file, {})
        gone = [call for call, each in kept.items() if session in {0, each.session}]
        for call in gone:
            kept[call].stop.set()
        self._native.forget(file, session)
        for call in gone:
            del kept[call]
        if not kept:
            self._kept.pop(file, None)
