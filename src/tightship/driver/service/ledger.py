"""Everything that is alive: connections, what they own, and what runs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Generic, TypeVar

from tightship.driver.protocol.replies import Failed, Reply
from tightship.driver.service.effects import CloseFile, DropPool, Effect, Send
from tightship.driver.service.execution import Execution
from tightship.driver.service.holds import Held
from tightship.driver.service.identifiers import Identifiers
from tightship.driver.service.owned import Connection
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.pools import Pool
from tightship.driver.types.quota import Account, Accounts, Resource
from tightship.driver.types.settings import Settings
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus, invalid
from tightship.driver.types.timers import Timers
from tightship.errors import DriverError

C_co = TypeVar("C_co", covariant=True)


@dataclass(slots=True, eq=False)
class Incoming(Generic[C_co]):
    """A call while it is answered.

    Attributes:
        kept: Indexes of files that somebody has taken over; the others are closed.
    """

    connection: Connection
    number: int
    call: C_co
    files: tuple[Attachment, ...]
    now_ns: int
    kept: set[int] = field(default_factory=set)

    def file(self, index: int) -> Attachment:
        """A file beside the call.

        Raises:
            DriverError: INVALID_ARGUMENT: there is none of that index.
        """
        if not 0 <= index < len(self.files):
            raise invalid(f"File {index} is named; {len(self.files)} came beside the call.")
        return self.files[index]


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A call that the rim works on.

    Attributes:
        held: What it holds meanwhile.
        files: Handles to close when it is over.
        finish: Of what the rim has answered and the client, if it is there, the reply.
        stop: Tells the rim that nobody waits any more.
    """

    connection: int
    number: int
    account: Account
    held: Held
    finish: Callable[[object, Connection | None], Reply | None]
    files: tuple[int, ...] = ()
    stop: Effect | None = None


@dataclass(frozen=True, slots=True)
class LivePool:
    """A pool that somebody holds, and whose it is or was."""

    pool: Pool
    caller: Caller


class Ledger:
    """What is alive, and the effects of the event that is handled.

    Numbers of pools, models, executions, bursts and calls to the rim come from one row, so that no
    number is ever of two things; tokens come from another, of 31 bits.
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
        """Have the rim do something."""
        self.effects.append(effect)
        if type(effect) is DropPool:
            del self.pools[effect.pool.identifier]

    def send(self, connection: int, number: int, reply: Reply) -> None:
        """Answer a call, if the client is still there."""
        if connection in self.connections:
            self.emit(Send(connection, number, reply))

    def let_go(self, held: Held) -> None:
        """Somebody needs a thing no more."""
        held.let_go(self.emit)

    def held_count(self, connection: int) -> int:
        """Pools, models and buffers that a client has."""
        client = self.connections.get(connection)
        if client is None:
            return 0
        return len(client.pools) + len(client.models) + len(client.buffers)

    def wait(self, number: int, waiting: Waiting) -> None:
        """The rim is asked under a number; `finish` is called with its answer.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_TRANSIENT: too many calls of the client wait.
        """
        waiting.account.charge(Resource.CALLS)
        self.waiting[number] = waiting

    def give_up(self, number: int, reply: Reply) -> None:
        """Answer a call that the rim works on; what the rim makes of it is dropped."""
        waiting = self.waiting[number]
        self.send(waiting.connection, waiting.number, reply)
        if waiting.stop is not None:
            self.emit(waiting.stop)
        self.waiting[number] = replace(waiting, finish=lambda *_: None, stop=None)

    def orphan(self, connection: int) -> None:
        """Nobody waits for the calls of a client that the rim works on."""
        for number, waiting in self.waiting.items():
            if waiting.connection == connection:
                self.timers.cancel(number)
                if waiting.stop is not None:
                    self.emit(waiting.stop)

    def finish(self, number: int, answer: object) -> None:
        """The rim has answered; nothing if it was not asked, or the call has been given up."""
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
        self.let_go(waiting.held)


def failed(error: DriverError) -> Failed:
    """The answer to a call that was refused."""
    return Failed(ErrorStatus(error.status), str(error))


def refuse(status: ErrorStatus, message: str) -> None:
    """Raise the error of a status, unless it is NONE.

    Raises:
        DriverError: Of that status.
    """
    if status is not ErrorStatus.NONE:
        raise DriverError(message, status=status)
