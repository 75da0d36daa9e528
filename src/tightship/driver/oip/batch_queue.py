"""Dynamic batching: requests that wait for a permit are joined with the one that gets it.

Each request waits in its own place, so that clients and models alternate as without batches. The
one that gets a permit takes others of the same shapes along, up to the largest batch.
"""

import threading
from collections import deque

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.inference import Bound
from tightship.driver.oip.joined_run import JoinedRun, Member, Ran

WORTH_NS = 300_000
"""Duration of runs from which requests are joined: at 0.1 ms, joining gains nothing."""
RUNS_KEPT = 8
"""Latest runs of which the shortest decides, because a first run of a batch also plans it."""


class BatchQueue:
    """Requests of a model that wait to be run. May be used from several threads."""

    def __init__(self, size_max: int, delay_us: int) -> None:
        """Create an empty queue.

        Args:
            size_max: Rows of the largest batch.
            delay_us: Microseconds that a request waits for others before it asks for a permit.
        """
        self._size_max, self._delay_s = size_max, delay_us / 1e6
        self._took_ns: deque[int] = deque(maxlen=RUNS_KEPT)
        self._waiting: list[Member] = []
        self._changed = threading.Condition()

    def run(self, bound: Bound, caller: Caller, asked_ns: int) -> Ran:
        """Run a request of a caller that arrived at `asked_ns`, alone or with others.

        Raises:
            OipError: The caller leaves, the time is over, or the run fails.
        """
        served = bound.served
        member = Member(bound, caller.place(served.name, served.metrics), asked_ns)
        try:
            with caller.noticing(member.leave):
                return self._run(member, caller)
        finally:
            member.end()

    def _run(self, member: Member, caller: Caller) -> Ran:
        with self._changed:
            self._waiting.append(member)
            self._changed.notify_all()
        self._wait_for_others(member)
        has_permit = caller.take(member.place, member.left_s)
        joined = self._settled(member, has_permit=has_permit)
        if joined is None:
            raise caller.refusal()
        if joined.first is not member:
            if has_permit:
                caller.give_back(member.place)
            return joined.result_of(member, caller)
        try:
            joined.run()
            member.bound.served.joined.add(joined.shared_count)
        finally:
            joined.end()
            for other in joined.members[1:]:
                caller.withdraw(other.place)  # now, so that its thread wakes once
            caller.give_back(member.place)
        found = joined.result_of(member, caller)
        self.note(found.ended_ns - found.began_ns)
        return found

    @property
    def pays(self) -> bool:
        """Whether runs take long enough for waking threads together to be worth it."""
        return min(tuple(self._took_ns), default=WORTH_NS) >= WORTH_NS

    def note(self, duration_ns: int) -> None:
        """Note how long a run took."""
        self._took_ns.append(duration_ns)

    def _wait_for_others(self, member: Member) -> None:
        """Wait until a batch is full, another one takes this along, or the delay is over."""
        left_s = member.left_s
        delay_s = self._delay_s if left_s is None else min(self._delay_s, left_s)
        if not delay_s:
            return
        with self._changed:
            self._changed.wait_for(
                lambda: member.joined is not None or member.has_left or self._is_full(member),
                delay_s,
            )

    def _is_full(self, member: Member) -> bool:
        alike = [each.size for each in self._waiting if each.key == member.key]
        return sum(alike) >= self._size_max

    def _settled(self, member: Member, *, has_permit: bool) -> JoinedRun | None:
        """Return the run of a request that no longer waits; None if there will be none."""
        with self._changed:
            if member.joined is None:
                self._waiting.remove(member)
                if has_permit and not member.has_left:
                    self._join(member)
            return member.joined

    def _join(self, first: Member) -> None:
        """Take along waiting requests, those that came first before others."""
        members, size = [first], first.size
        for each in self._waiting:
            is_alike = each.key == first.key and not each.has_left
            if is_alike and size + each.size <= self._size_max:
                members.append(each)
                size += each.size
        joined = JoinedRun(tuple(members))
        for each in members:
            each.joined = joined
        self._waiting = [each for each in self._waiting if each.joined is None]
        self._changed.notify_all()
