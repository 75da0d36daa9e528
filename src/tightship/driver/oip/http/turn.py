"""Requests of one turn of an event loop that wait for its end, where they are run together."""

from collections import Counter
from dataclasses import dataclass, field

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.http.eager import Held
from tightship.driver.oip.http.message import HttpRequest, HttpResponse
from tightship.driver.oip.joined_run import Key
from tightship.driver.oip.joining_gain import JoiningGain
from tightship.driver.oip.served_model import ServedModel

LEFT_OUT = 8
"""Number of requests that are answered at once after a turn of a single request."""

Answer = Held[HttpResponse | None]
"""Answer of a request; None if it is to be answered alone."""


@dataclass(slots=True, eq=False)
class Turn:
    """Requests of a model, in the order in which they came.

    Attributes:
        callers: Their clients, which each request has too.
        rows: Rows by the shapes of the inputs.
    """

    requests: list[HttpRequest] = field(default_factory=list)
    callers: list[Caller] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    rows: Counter[Key] = field(default_factory=Counter)

    def add(self, request: HttpRequest, caller: Caller, key: Key, rows: int) -> Answer:
        """Add a request; return what its coroutine awaits."""
        answer: Answer = Held()
        self.requests.append(request)
        self.callers.append(caller)
        self.answers.append(answer)
        self.rows[key] += rows
        return answer


@dataclass(slots=True, eq=False)
class TurnTarget:
    """Target of inferences that may be joined.

    Attributes:
        rows_max: Rows of the largest batch.
        gain: Whether joining them at the end of a turn has paid.
        client: Client that asked last.
        turn: Requests of the current turn; None without any.
        left_out: Number of further requests that are answered at once.
    """

    served: ServedModel
    rows_max: int
    gain: JoiningGain = field(default_factory=lambda: JoiningGain(0))
    client: object = None
    turn: Turn | None = None
    left_out: int = 0

    def begins_turn(self, client: object) -> bool:
        """Whether the request of a client is kept, as the first of a turn.

        It is kept if the request before it came from another client, if joining pays, and if none
        of the last `LEFT_OUT` requests was the only one of its turn.
        """
        follows = self._follows_another(client)
        if self.left_out:
            self.left_out -= 1
            return False
        return follows and self.gain.pays

    def end_turn(self, count: int) -> None:
        """Note that a turn had so many requests."""
        self.turn = None
        self.left_out = LEFT_OUT if count == 1 else 0

    def _follows_another(self, client: object) -> bool:
        """Whether a client asks behind another one; a client alone always asks behind itself."""
        before, self.client = self.client, client
        return before is not None and before != client
