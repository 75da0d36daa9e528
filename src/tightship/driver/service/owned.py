"""Belongings of a client, and cached checks of its requests."""

import operator
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tightship.driver.service.buffers import Buffer
from tightship.driver.service.effects import Effect, RunArgument
from tightship.driver.service.execution import BufferUse, Execution
from tightship.driver.service.holds import RefCounted
from tightship.driver.types.pools import Pool
from tightship.driver.types.quota import Account
from tightship.driver.types.request import BoundRequest, Interface, Request
from tightship.driver.types.snapshot import Caller

RECENT = 4


@dataclass(frozen=True, slots=True, eq=False)
class OwnedPool:
    """Pool and its reference count."""

    pool: Pool
    held: RefCounted


@dataclass(slots=True, eq=False)
class OwnedModel:
    """Model and its reference count.

    Attributes:
        recent: Checks of the last requests. They refer to the model, so it is emptied when the
            model or its connection is released.
        interface: For a file, without inputs and outputs until it is prepared.
    """

    identifier: int
    priority: int
    held: RefCounted
    interface: Interface
    recent: "deque[Checked]" = field(default_factory=lambda: deque(maxlen=RECENT))


@dataclass(frozen=True, slots=True)
class Asked:
    """Request with its pools.

    Attributes:
        pools: Result of `pools_of`.
    """

    model: OwnedModel
    request: Request
    pools: Sequence[OwnedPool | None]
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """Request that may run."""

    inputs: tuple[RunArgument, ...]
    outputs: tuple[RunArgument, ...]
    uses: tuple[BufferUse, ...]


@dataclass(slots=True)
class Checked:
    """Checks of a request, valid while its pools are the same.

    Attributes:
        buffers: Buffers that its tokens referred to, in order, when they were checked.
        uses: Uses of these buffers with checked roles; their state is checked every time.
        bound: Request that may run while outputs in buffers have `rooms`.
    """

    asked: Asked
    request: BoundRequest
    buffers: tuple[Buffer, ...] | None = None
    uses: tuple[BufferUse, ...] = ()
    bound: Bound | None = None
    rooms: tuple[int, ...] = ()

    def is_of(self, asked: Asked) -> bool:
        """Whether it checks this request: an equal request is the same object (`forms.REQUEST`)."""
        mine = self.asked
        return (
            mine.request is asked.request
            and mine.is_fenced == asked.is_fenced
            and all(map(operator.is_, mine.pools, asked.pools))
        )


@dataclass(slots=True, eq=False)
class Session:
    """Burst or reusable execution: at most one run of it at a time.

    Attributes:
        checked: Request of a reusable execution; None for a burst.
        slots: Pools that a burst holds.
        running: Identifier of the run under way, or 0.
    """

    identifier: int
    model: OwnedModel
    held: RefCounted
    checked: Checked | None = None
    measure_timing: bool = False
    loop_timeout_ns: int = -1
    slots: dict[int, OwnedPool] = field(default_factory=dict)
    running: int = 0

    def holdings(self) -> list[RefCounted]:
        """Return its own reference and those of its slots."""
        return [self.held, *(owned.held for owned in self.slots.values())]


@dataclass(slots=True, eq=False)
class Connection:
    """Client and its belongings, by identifier.

    Attributes:
        repeats: Sessions of calls that the server may repeat (`rules.repeats`), with versions of
            the buffers that these use.
        pausing: Executions while which it repeats none.
        has_ring: Calls may come through memory (`OpenRing`).
        heard_ns: When it connected, or its last call came to the service.
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
    heard_ns: int = 0

    @property
    def identifier(self) -> int:
        """Number of the connection."""
        return self.caller.connection

    @property
    def holds_nothing(self) -> bool:
        """Whether the client has no memory, no model, no session and no execution to ask about."""
        return not (
            self.pools or self.models or self.buffers or self.fenced or self.reusables
            or self.bursts or self.has_ring
        )  # fmt: skip

    def release(self, emit: Callable[[Effect], None]) -> None:
        """Release everything after the client is gone."""
        for execution in self.fenced.values():
            execution.release(emit)
        for session in (*self.reusables.values(), *self.bursts.values()):
            for held in session.holdings():
                held.release(emit)
            session.model.recent.clear()
        owned: list[OwnedModel | Buffer | OwnedPool] = [*self.models.values()]
        owned += [*self.buffers.values(), *self.pools.values()]
        for thing in owned:
            thing.held.release(emit)
        for model in self.models.values():
            model.recent.clear()
