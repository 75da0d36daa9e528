"""Limits the open gRPC calls, and ends one that waits for its client when another needs a slot."""

import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic_ns

from tightship.driver.oip.admission.gate import NO_USE, Use
from tightship.driver.oip.limits import RECENT_NS, UNREAD_NS, WAIT_S, EndpointLimits
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.oip.regions import Code
from tightship.driver.oip.request_log import Exchange


class Stage(enum.Enum):
    """Stages of an open call; each value is the reason logged if the call is ended in it."""

    MESSAGE = "its message did not come in time"
    """The call waits for its only message, of which a part may have come."""
    NEXT = "its stream was idle, and the slot was needed for others"
    """The call waits for the next message of its stream."""
    ANSWER = ""
    """The server computes the response."""
    READ = "its client did not read the response in time"
    """The call waits until its client has read the response."""


_REMOVABLE_NS = {Stage.MESSAGE: RECENT_NS, Stage.NEXT: RECENT_NS, Stage.READ: UNREAD_NS}
"""Nanoseconds in a stage after which a call may be ended to make room for another."""
_LIMITED = frozenset({Stage.MESSAGE, Stage.READ})
"""Stages in which a call ends after `EndpointLimits.transfer_s`, even if slots are free."""


@dataclass(slots=True, eq=False)
class OpenCall:
    """An open gRPC call, from the arrival of its headers until its status is sent.

    Attributes:
        name: Name of the method.
        peer: The client's address, as gRPC names it.
        account: What the call counts for: the client's address without a port, empty if it is gone,
            or the name of its token.
        cancel: Function that ends the call with the status CANCELLED.
        state: Its stage, and when that began, by `monotonic_ns`.
        is_over: Whether its status has been sent or it has been cancelled.
        client: Name of the client in the log: `peer`, or the one behind a proxy.
        exchange: What is logged of the call; None without a log of calls.
        use: Counts its bytes, and that it is under way.
    """

    name: str
    peer: str
    account: str
    cancel: Callable[[], object]
    state: tuple[Stage, int] = field(default_factory=lambda: (Stage.MESSAGE, monotonic_ns()))
    is_over: bool = False
    client: str = ""
    exchange: Exchange | None = None
    use: Use = NO_USE

    def __post_init__(self) -> None:
        """Name the client as the library does, unless it is behind a proxy."""
        self.client = self.client or self.peer

    def enter(self, stage: Stage) -> None:
        """Enter a stage now."""
        self.state = (stage, monotonic_ns())

    def received(self, message: bytes) -> bytes:
        """Count a message of the client, and return it."""
        self.use.spend(len(message))
        if self.exchange is not None:
            self.exchange.received_bytes += len(message)
        return message

    def sent(self, message: bytes) -> bytes:
        """Count a message to the client, and return it."""
        self.use.spend(len(message))
        if self.exchange is not None:
            self.exchange.sent_bytes += len(message)
        return message


class CallSlots:
    """Slots for open calls; further calls wait for a slot. Methods may be called by any thread.

    When all slots are taken, a call of the account with the most calls is ended, so that one
    account cannot exclude the others.
    """

    def __init__(self, limits: EndpointLimits, log: RefusalLog) -> None:
        """Allow `connections_max` calls, each of which may wait `transfer_s` for its client."""
        self._max = limits.connections_max
        self._late_ns = int(limits.transfer_s * 1e9)
        self._log = log
        self._open = set[OpenCall]()
        self._counts: dict[str, int] = {}
        self._waiting: list[OpenCall] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)

    def take(self, call: OpenCall) -> None:
        """Wait for a slot.

        Raises:
            OipError: No slot became free within `WAIT_S` seconds, or the call ended before.
        """
        if self.take_free(call):
            return
        with self._lock:
            self._waiting.append(call)
            self._changed.wait_for(lambda: call.is_over or self._admits(call), WAIT_S)
            self._waiting.remove(call)
            if self._waiting:
                self._changed.notify_all()
            if call in self._open:
                return
        raise OipError(
            f"all {self._max} calls are busy; try again later, or start the server with a larger "
            "`--max-connections`",
            Code.RESOURCE_EXHAUSTED,
        )

    def take_free(self, call: OpenCall) -> bool:
        """Take a slot if that needs no waiting; return whether there is one."""
        with self._lock:
            is_free = not (self._waiting or call.is_over or len(self._open) >= self._max)
            if is_free:
                self._place(call)
            return is_free

    def leave(self, call: OpenCall) -> None:
        """Release the slot of a call that is over; one that still waits for a slot gives up."""
        with self._lock:
            call.is_over = True
            if call in self._open:
                self._remove(call)
            if self._waiting:
                self._changed.notify_all()

    def end_late(self) -> None:
        """End calls that have waited too long for their clients; called periodically.

        It also wakes calls that wait for a slot, because others may have become removable.
        """
        with self._lock:
            first_ns = monotonic_ns() - self._late_ns
            for call in tuple(self._open):
                stage, since_ns = call.state
                if stage in _LIMITED and since_ns <= first_ns:
                    self._end(call, stage)
            if self._waiting:
                self._changed.notify_all()

    @property
    def is_quiet(self) -> bool:
        """Whether every open call is an idle stream and no call waits for a slot."""
        with self._lock:
            is_idle = all(call.state[0] is Stage.NEXT for call in self._open)
            return is_idle and not self._waiting

    def busy_peers(self) -> set[str]:
        """Return the addresses of clients with a call whose message has come."""
        with self._lock:
            return {call.peer for call in self._open if call.state[0] is not Stage.MESSAGE}

    def _admits(self, call: OpenCall) -> bool:
        """Give a waiting call a slot if it is next in line and one is free or can be freed."""
        if min(self._waiting, key=lambda each: self._counts.get(each.account, 0)) is not call:
            return False
        if len(self._open) >= self._max and not self._make_room():
            return False
        self._place(call)
        return True

    def _make_room(self) -> bool:
        now_ns = monotonic_ns()
        found = []
        for call in self._open:
            stage, since_ns = call.state
            if stage in _REMOVABLE_NS and now_ns - since_ns >= _REMOVABLE_NS[stage]:
                found.append((-self._counts[call.account], since_ns, stage, call))
        if not found:
            return False
        *_, stage, call = min(found, key=lambda each: each[:2])
        self._end(call, stage)
        return True

    def _place(self, call: OpenCall) -> None:
        self._open.add(call)
        self._counts[call.account] = self._counts.get(call.account, 0) + 1

    def _remove(self, call: OpenCall) -> None:
        self._open.remove(call)
        left = self._counts[call.account] - 1
        if left:
            self._counts[call.account] = left
        else:
            del self._counts[call.account]

    def _end(self, call: OpenCall, stage: Stage) -> None:
        self._log.refused(call.client, call.name, stage.value)
        self._remove(call)
        call.cancel()
