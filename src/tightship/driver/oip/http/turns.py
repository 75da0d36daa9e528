"""Requests that several clients send at once, answered by one run without a thread.

In a turn, an event loop reads every connection on which something has come, and then does what was
put off with `call_soon`. Quick requests for a model with an open batch that are read in one turn
are run together at its end, with one permit. A turn does not wait for requests that have not come.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.http.calls import BODY_SMALL_BYTES, HttpCalls
from tightship.driver.oip.http.message import HttpRequest, HttpResponse
from tightship.driver.oip.http.turn import Answer, Turn, TurnTarget

Respond = Callable[[Sequence[HttpRequest]], list[HttpResponse]]


class Turns:
    """Open turns of the targets of an application, on one event loop."""

    def __init__(self, calls: HttpCalls, respond: Respond, executor: Executor) -> None:
        """Answer by calls.

        Args:
            calls: The calls of the protocol.
            respond: Returns the responses to inferences of one target; called on any thread.
            executor: Threads that run batches of a size that has to be planned first.
        """
        self._calls, self._respond, self._executor = calls, respond, executor

    def held(self, asked: HttpRequest, caller: Caller, client: object) -> Answer | None:
        """Keep a request until the end of the turn, if it may be run with others.

        Args:
            asked: Request.
            caller: Its client.
            client: Tells clients apart; the first request of a turn is kept only if another
                client's came before it.

        Returns:
            What the coroutine of the request awaits; None if it is to be answered alone.
        """
        target = self._calls.turn_target(asked)
        if target is None or len(asked.body) > BODY_SMALL_BYTES:
            return None
        if target.turn is not None:
            target.client = client
        elif not target.begins_turn(client):
            return None
        found = self._calls.joinable(asked, caller) if self._calls.is_quick(asked, None) else None
        if found is None:
            return None
        request, key, rows = found
        while target.turn is not None and target.turn.rows.total() + rows > target.rows_max:
            self._end(target, target.turn)
        if target.turn is None:
            target.turn = Turn()
            asyncio.get_running_loop().call_soon(self._end, target, target.turn)
        return target.turn.add(request, caller, key, rows)

    def _end(self, target: TurnTarget, turn: Turn) -> None:
        """Answer the requests of a turn, unless that was done because it was full."""
        if target.turn is not turn:
            return
        first, count = turn.callers[0], len(turn.requests)
        target.end_turn(count)
        if count == 1 or not first.reserve():
            _settle(turn, [None] * count)
        elif self._calls.are_planned(target, turn.rows):
            _settle(turn, self._ran(turn))
        else:
            loop = asyncio.get_running_loop()
            made = loop.run_in_executor(self._executor, self._ran, turn)
            made.add_done_callback(partial(_settle_later, turn))

    def _ran(self, turn: Turn) -> list[HttpResponse]:
        try:
            return self._respond(turn.requests)
        finally:
            turn.callers[0].release()


def _settle(turn: Turn, responses: Sequence[HttpResponse | None]) -> None:
    """Have each request go on, whatever becomes of the others."""
    with ExitStack() as rest:
        for answer, response in zip(reversed(turn.answers), reversed(responses), strict=True):
            rest.callback(answer.settle, response)


def _settle_later(turn: Turn, made: "asyncio.Future[list[HttpResponse]]") -> None:
    is_made = not made.cancelled() and made.exception() is None
    _settle(turn, made.result() if is_made else [None] * len(turn.requests))
