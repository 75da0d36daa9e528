"""Everything that is alive: connections, their belongings and executions."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Generic, TypeVar

from tightship.driver.protocol.replies import Failed, Reply
from tightship.driver.service.effects import CloseFile, DropPool, Effect, Send
from tightship.driver.service.execution import Execution
from tightship.driver.service.holds import RefCounted
from tightship.driver.service.owned import Connection
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.pools import Pool
from tightship.driver.types.quota import Account, Accounts, Resource
from tightship.driver.types.settings import Settings
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus, invalid
from tightship.driver.types.timers import Timers
from tightship.errors import DriverError


class Identifiers:
    """Positive numbers of `bits` bits in an order that does not reveal how many were taken.

    Multiplying by an odd number permutes the numbers below a power of two.
    """

    def __init__(self, bits: int, key: int) -> None:
        """Choose the order by `key`."""
        self._mask = (1 << bits) - 1
        self._factor = key | 1
        self._count = 0

    def take(self) -> int:
        """Return the next number.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_PERSISTENT: all were taken.
        """
        if self._count == self._mask:
            raise DriverError(
                f"All {self._mask} identifiers are used up; restart the driver.",
                status=ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
            )
        self._count += 1
        return self._count * self._factor & self._mask


C_co = TypeVar("C_co", covariant=True)


@dataclass(slots=True, eq=False)
class Incoming(Generic[C_co]):
    """Call that is being answered.

    Attributes:
        kept: Indexes of files with a new owner; the others are closed.
    """

    connection: Connection
    number: int
    call: C_co
    files: tuple[Attachment, ...]
    now_ns: int
    kept: set[int] = field(default_factory=set)

    def file(self, index: int) -> Attachment:
        """Return a file beside the call.

        Raises:
            DriverError: INVALID_ARGUMENT: no file has this index.
        """
        if not 0 <= index < len(self.files):
            raise invalid(f"The call names file {index}; {len(self.files)} files came with it.")
        return self.files[index]


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """Call that waits for the server's answer.

    Attributes:
        held: Reference released with the call.
        files: Handles to close with the call.
        finish: Turns the server's answer into the reply; the connection is None if the client is
            gone.
        stop: Effect that tells the server that the result is not awaited.
    """

    connection: int
    number: int
    account: Account
    held: RefCounted
    finish: Callable[[object, Connection | None], Reply | None]
    files: tuple[int, ...] = ()
    stop: Effect | None = None


@dataclass(frozen=True, slots=True)
class LivePool:
    """Pool in use, and the client that registered it."""

    pool: Pool
    caller: Caller


class Ledger:
    """Everything that is alive, and the effects of the current event.

    Pools, models, executions, bursts and requests to the server share one sequence of identifiers,
    so that each number means one thing; tokens have a sequence of their own, of 31 bits.
    """

    def __init__(self, settings: Settings, rng: Random, accounts: Accounts) -> None:
        self.settings = settings
        self.accounts = accounts
        self.identifiers = Identifiers(63, rng.getrandbits(63))
        self.tokens = Identifiers(31, rng.getrandbits(31))
        self.connections: dict[int, Connection] = {}
        self.pools: dict[int, LivePool] = {}
        self.waiting: dict[int, Waiting] = {}
        self.executions: dict[int, Execution] = {}
        self.watchers: dict[int, Execution] = {}
        self.timers = Timers()
        self.effects: list[Effect] = []

    def emit(self, effect: Effect) -> None:
        """Append an effect."""
        self.effects.append(effect)
        if type(effect) is DropPool:
            del self.pools[effect.pool.identifier]

    def send(self, connection: int, number: int, reply: Reply) -> None:
        """Answer a call, unless the client is gone."""
        if connection in self.connections:
            self.emit(Send(connection, number, reply))

    def release(self, held: RefCounted) -> None:
        """Release a reference."""
        held.release(self.emit)

    def held_count(self, connection: int) -> int:
        """Return the number of pools, models and buffers of a client."""
        client = self.connections.get(connection)
        if client is None:
            return 0
        return len(client.pools) + len(client.models) + len(client.buffers)

    def wait(self, number: int, waiting: Waiting) -> None:
        """Register a call that waits for the server's answer under a number.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_TRANSIENT: too many calls of the client wait.
        """
        waiting.account.charge(Resource.CALLS)
        self.waiting[number] = waiting

    def give_up(self, number: int, reply: Reply) -> None:
        """Answer a waiting call; the server's answer will be ignored."""
        waiting = self.waiting[number]
        self.send(waiting.connection, waiting.number, reply)
        if waiting.stop is not None:
            self.emit(waiting.stop)
        self.waiting[number] = replace(waiting, finish=lambda *_: None, stop=None)

    def orphan(self, connection: int) -> None:
        """Stop the work on waiting calls of a client that is gone."""
        for number, waiting in self.waiting.items():
            if waiting.connection == connection:
                self.timers.cancel(number)
                if waiting.stop is not None:
                    self.emit(waiting.stop)

    def finish(self, number: int, answer: object) -> None:
        """Complete a waiting call with the server's answer; unknown numbers are ignored."""
        waiting = self.waiting.pop(number, None)
        if waiting is None:
            return
        self.timers.cancel(number)
        connection = self.connections.get(waiting.connection)
        try:
            reply = waiting.finish(answer, connection)
        except DriverError as error:
            reply = failed(error)
        waiting.account.refund(Resource.CALLS)
        if reply is not None:
            self.send(waiting.connection, waiting.number, reply)
        for handle in waiting.files:
            self.emit(CloseFile(handle))
        self.release(waiting.held)


def failed(error: DriverError) -> Failed:
    """Return the reply to a refused call."""
    return Failed(ErrorStatus(error.status), str(error))


def refuse(status: ErrorStatus, message: str) -> None:
    """Raise the error of a status other than NONE.

    Raises:
        DriverError: Error with this status.
    """
    if status is not ErrorStatus.NONE:
        raise DriverError(message, status=status)
