"""Slots of gRPC calls: how many may be open, and which of them make room for others."""

import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic_ns

from tightship.driver.oip.limits import RECENT_NS, UNREAD_NS, WAIT_S, FaceLimits
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.refusal_log import RefusalLog
from tightship.driver.oip.regions import Code


class Stage(enum.Enum):
    """What a call waits for."""

    MESSAGE = "its message did not come in time"
    """The only message of its client, which may have come in part."""
    NEXT = "its stream was idle, and the slot was needed for others"
    """The next message of a stream."""
    ANSWER = ""
    """The server."""
    READ = "its client did not read the response in time"
    """Its client to read what was answered."""


_REMOVABLE_NS = {Stage.MESSAGE: RECENT_NS, Stage.NEXT: RECENT_NS, Stage.READ: UNREAD_NS}
"""How long a call stays in a stage before it can make room."""
_LIMITED = frozenset({Stage.MESSAGE, Stage.READ})
"""Stages that have a deadline, also where there is room."""


@dataclass(slots=True, eq=False)
class OpenCall:
    """A call from its headers until its status is sent.

    Attributes:
        name: Of the method.
        peer: The client's address, as gRPC names it.
        account: The client's address without a port; empty if it is gone.
        cancel: Ends the call.
        state: Its stage, and since when, by `monotonic_ns`.
        is_over: Whether its status is sent, or it was cancelled.
    """

    name: str
    peer: str
    account: str
    cancel: Callable[[], object]
    state: tuple[Stage, int] = field(default_factory=lambda: (Stage.MESSAGE, monotonic_ns()))
    is_over: bool = False

    def enter(self, stage: Stage) -> None:
        """Go to a stage."""
        self.state = (stage, monotonic_ns())


class CallSlots:
    """As many open calls as there are slots, the others waiting for one; for any thread.

    Room is made by the account with the most calls, so that one account cannot keep others out.
    """

    def __init__(self, limits: FaceLimits, log: RefusalLog) -> None:
        """Bound calls by `connections_max`, and their waits for a client by `transfer_s`."""
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
            OipError: There is none within `WAIT_S`, or the call is over before.
        """
        with self._lock:
            if not (self._waiting or call.is_over or len(self._open) >= self._max):
                self._place(call)
                return
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

    def leave(self, call: OpenCall) -> None:
        """Release the slot of a call that is over, or let it wait for none."""
        with self._lock:
            call.is_over = True
            if call in self._open:
                self._remove(call)
            if self._waiting:
                self._changed.notify_all()

    def end_late(self) -> None:
        """End calls that wait too long for their clients; called every now and then.

        Calls that wait for a slot look then which others have become removable.
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
        """Whether there are no calls but idle streams."""
        with self._lock:
            is_idle = all(call.state[0] is Stage.NEXT for call in self._open)
            return is_idle and not self._waiting

    def busy_peers(self) -> set[str]:
        """Clients with calls, except for those that have yet to send the message of a call."""
        with self._lock:
            return {call.peer for call in self._open if call.state[0] is not Stage.MESSAGE}

    def _admits(self, call: OpenCall) -> bool:
        """Give a waiting call a slot, if it is the next and there is one or room can be made."""
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
        self._log.refused(call.peer, call.name, stage.value)
        self._remove(call)
        call.cancel()
