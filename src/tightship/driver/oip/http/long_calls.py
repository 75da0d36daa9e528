"""HTTP calls that may take long, answered by threads while their clients are watched."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from typing import Any

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.http.calls import HttpCalls, Inference, changes_models
from tightship.driver.oip.http.message import HttpRequest, HttpResponse
from tightship.driver.oip.queued_calls import QueuedCalls

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Respond = Callable[[HttpRequest, Caller], HttpResponse]

WATCHED_AFTER_S = 0.01
"""Seconds of a call after which its client is watched: to begin and end that takes 30 us."""


class LongCalls:
    """Answers calls by threads: inferences by those of a queue, others by threads of their own."""

    def __init__(
        self,
        calls: HttpCalls,
        respond: Respond,
        executor: Executor,
        loaders: Executor,
        queue: QueuedCalls | None,
    ) -> None:
        """Answer by calls.

        Args:
            calls: The calls of the protocol.
            respond: Returns the response to a request; called on any thread.
            executor: Threads that run models, or wait for a permit: one for each connection.
            loaders: Threads that load and unload models.
            queue: Queue of calls that wait for permits; None to have all wait in threads.
        """
        self._calls, self._respond, self._queue = calls, respond, queue
        self._executor, self._loaders = executor, loaders

    async def answer(self, request: HttpRequest, caller: Caller, receive: Receive) -> HttpResponse:
        """Answer a request in a thread, unless the client leaves."""
        loop = asyncio.get_running_loop()
        watch = _Watch(loop, receive, caller)
        try:
            found = None if self._queue is None else self._calls.inference(request)
            if found is not None and (answer := self._queued(loop, found, caller)) is not None:
                return await answer
            threads = self._loaders if changes_models(request) else self._executor
            return await loop.run_in_executor(threads, self._respond, request, caller)
        except asyncio.CancelledError:
            caller.leave()
            raise
        finally:
            watch.end()

    def _queued(
        self, loop: asyncio.AbstractEventLoop, found: Inference, caller: Caller
    ) -> Awaitable[HttpResponse] | None:
        """Queue an inference; return what waits for its answer, None if there is no thread."""
        assert self._queue is not None
        answer: asyncio.Future[HttpResponse] = loop.create_future()

        def call() -> None:
            response = self._respond(found.request, caller)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_settle, answer, response)

        number = self._queue.enter(call, caller, found.served.name, found.served.metrics)
        if number is None:
            return None
        return self._answered(answer, found, caller, partial(self._queue.give_up, number))

    async def _answered(
        self,
        answer: "asyncio.Future[HttpResponse]",
        found: Inference,
        caller: Caller,
        give_up: Callable[[], None],
    ) -> HttpResponse:
        """Wait for an answer; give up once the caller has left or the time is over."""
        late_s = found.left_s
        timer = None if late_s is None else answer.get_loop().call_later(late_s, give_up)
        try:
            with self._calls.waiting(caller), caller.noticing(give_up):
                return await answer
        finally:
            if timer is not None:
                timer.cancel()


def _settle(answer: "asyncio.Future[HttpResponse]", response: HttpResponse) -> None:
    if not answer.done():
        answer.set_result(response)


class _Watch:
    """Has a caller leave once its client disconnects, if its call takes some time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, caller: Caller) -> None:
        self._loop, self._receive, self._caller = loop, receive, caller
        self._timer = loop.call_later(WATCHED_AFTER_S, self._begin)
        self._task: asyncio.Task[None] | None = None

    def end(self) -> None:
        """Watch no longer."""
        self._timer.cancel()
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        self._task = self._loop.create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._caller.leave()
