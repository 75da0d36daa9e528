"""What a client owns, and what was found out of its requests."""

import operator
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tightship.driver.service.buffers import Buffer
from tightship.driver.service.effects import Effect, RunArgument
from tightship.driver.service.execution import BufferUse, Execution
from tightship.driver.service.holds import Held
from tightship.driver.types.pools import Pool
from tightship.driver.types.quota import Account
from tightship.driver.types.request import BoundRequest, Interface, Request
from tightship.driver.types.snapshot import Caller

RECENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class OwnedPool:
    """A pool and who holds it."""

    pool: Pool
    held: Held


@dataclass(slots=True, eq=False)
class OwnedModel:
    """A model and who holds it.

    Attributes:
        recent: What was found out of the last requests, for the next if it is one of them. They
            refer to the model, so it is emptied when the model or its connection is released.
        interface: Of a file, without inputs and outputs until it is prepared.
    """

    identifier: int
    priority: int
    held: Held
    interface: Interface
    recent: "deque[Checked]" = field(default_factory=lambda: deque(maxlen=RECENT))


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, and what of its pools is known already.

    Attributes:
        pools: As `pools_of` finds them.
    """

    model: OwnedModel
    request: Request
    pools: Sequence[OwnedPool | None]
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A request that may run."""

    inputs: tuple[RunArgument, ...]
    outputs: tuple[RunArgument, ...]
    uses: tuple[BufferUse, ...]


@dataclass(slots=True)
class Checked:
    """What was found out of a request, good for as long as its pools are the same.

    Attributes:
        buffers: Of its tokens, in order, when they were looked at.
        uses: Of these buffers, with roles that were checked; their state is checked every time.
        bound: What may run, with these rooms for outputs in buffers.
    """

    asked: Asked
    request: BoundRequest
    buffers: tuple[Buffer, ...] | None = None
    uses: tuple[BufferUse, ...] = ()
    bound: Bound | None = None
    rooms: tuple[int, ...] = ()

    def is_of(self, asked: Asked) -> bool:
        """Whether the same is asked: a request that comes again is one object (`forms.REQUEST`)."""
        mine = self.asked
        return (
            mine.request is asked.request
            and mine.is_fenced == asked.is_fenced
            and all(map(operator.is_, mine.pools, asked.pools))
        )


@dataclass(slots=True, eq=False)
class Session:
    """A burst or a reusable execution: at most one execution of it at a time.

    Attributes:
        checked: The request of a reusable execution; None for a burst.
        slots: Pools that a burst has kept, and a count of theirs that it holds.
        running: The execution that is under way, or 0.
    """

    identifier: int
    model: OwnedModel
    held: Held
    checked: Checked | None = None
    measure_timing: bool = False
    loop_timeout_ns: int = -1
    slots: dict[int, OwnedPool] = field(default_factory=dict)
    running: int = 0

    def holdings(self) -> list[Held]:
        """Itself and what it has kept."""
        return [self.held, *(owned.held for owned in self.slots.values())]


@dataclass(slots=True, eq=False)
class Connection:
    """A client and what it owns, by the numbers that it knows.

    Attributes:
        repeats: Sessions of calls that the rim may repeat (`rules.repeats`), with versions of the
            buffers that these use.
        pausing: Executions while which it repeats none.
        has_ring: Calls may come through memory (`OpenRing`).
    """

    caller: Caller
    account: Account
    pools: dict[int, OwnedPool] = field(default_factory=dict)
    models: dict[int, OwnedModel] = field(default_factory=dict)
    buffers: dict[int, Buffer] = field(default_factory=dict)
    fenced: dict[int, Execution] = field(default_factory=dict)
    reusables: dict[int, Session] = field(default_factory=dict)
    bursts: dict[int, Session] = field(default_factory=dict)
    repeats: dict[int, dict[Buffer, int]] = field(default_factory=dict)
    pausing: set[int] = field(default_factory=set)
    has_ring: bool = False

    @property
    def identifier(self) -> int:
        """Its number."""
        return self.caller.connection

    def let_go(self, emit: Callable[[Effect], None]) -> None:
        """The client is gone, and needs nothing more of what it owned."""
        for execution in self.fenced.values():
            execution.release(emit)
        for session in (*self.reusables.values(), *self.bursts.values()):
            for held in session.holdings():
                held.let_go(emit)
            session.model.recent.clear()
        owned: list[OwnedModel | Buffer | OwnedPool] = [*self.models.values()]
        owned += [*self.buffers.values(), *self.pools.values()]
        for thing in owned:
            thing.held.let_go(emit)
        for model in self.models.values():
            model.recent.clear()
