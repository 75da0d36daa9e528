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

Watch = Callable[[Callable[[], None]], Callable[[], None] | None]

WATCHED_AFTER_S = 0.01
"""Seconds of a call after which a client is watched that a task is needed for."""


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

    async def answer(self, request: HttpRequest, caller: Caller, watch: Watch) -> HttpResponse:
        """Answer a request in a thread, unless the client leaves.

        Args:
            request: Request.
            caller: Its client.
            watch: Has a function called once the client disconnects; may return one that ends this.
        """
        loop = asyncio.get_running_loop()
        end_watch = watch(caller.leave)
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
            if end_watch is not None:
                end_watch()

    def _queued(
        self, loop: asyncio.AbstractEventLoop, found: Inference, caller: Caller
    ) -> Awaitable[HttpResponse] | None:
        """Queue an inference; return its answer to await, or None if no thread can be started."""
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


def watched(receive: Receive, gone: Callable[[], None]) -> Callable[[], None]:
    """Call a function once `receive` says that the client disconnects, until the end.

    Returns:
        Function that ends this.
    """
    loop = asyncio.get_running_loop()
    begun: list[asyncio.Task[None]] = []
    timer = loop.call_later(WATCHED_AFTER_S, lambda: begun.append(loop.create_task(watch())))

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone()

    def end() -> None:
        timer.cancel()
        for task in begun:
            task.cancel()

    return end
