"""Dynamic batching: requests that wait for a permit are joined with the one that gets it.

Each request waits in its own place, so that clients and models alternate as without batches. The
one that gets a permit takes others of the same shapes along, up to the largest batch. Clients whose
requests ran together ask again at about the same time: the one that gets the permit first waits for
the others, for a part of the time of that run, if no other model waits for a permit. So it does not
run alone, and the others do not wait for that. A client without others is never kept waiting.
"""

import threading
from collections.abc import Sequence
from time import monotonic

from tightship.driver.oip.batch_sizes import BatchSizes
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.inference import Bound
from tightship.driver.oip.joined_run import JoinedRun, Key, Member, Ran
from tightship.driver.oip.joining_gain import JoiningGain

RETURN = 0.25
"""Part of a joined run's duration within which its clients are waited for again."""


class BatchQueue:
    """Requests of a model that wait to be run. May be used from several threads."""

    def __init__(self, size_max: int, delay_us: int) -> None:
        """Create an empty queue.

        Args:
            size_max: Rows of the largest batch.
            delay_us: Microseconds that a request waits for others before it asks for a permit.
        """
        self._size_max, self._delay_s = size_max, delay_us / 1e6
        self._sizes = BatchSizes(size_max)
        self.gain = JoiningGain()
        self._waiting: list[Member] = []
        self._returning, self._return_until_s = 0, 0.0  # rows of the last joined run
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

    def run_at_once(self, members: Sequence[Member]) -> None:
        """Run requests in this thread, which has a permit: those of equal shapes together."""
        left = list(members)
        while left:
            with self._changed:
                joined = self._batch(left[0], left)
            try:
                joined.run()
                self._note(joined)
            finally:
                joined.end()
            left = [each for each in left if each.joined is not joined]

    def is_planned(self, key: Key, rows: int) -> bool:
        """Whether a batch of `rows` would run now without being planned first."""
        with self._changed:
            return self._sizes.is_planned(key, rows)

    def _note(self, joined: JoinedRun) -> None:
        """Count the requests of a run that were part of another's, and the size of its batch."""
        joined.first.bound.served.joined.add(joined.shared_count)
        if joined.shared_count:
            with self._changed:
                self._sizes.note_run(joined.first.key, joined.size)

    def _run(self, member: Member, caller: Caller) -> Ran:
        with self._changed:
            self._waiting.append(member)
            self._changed.notify_all()
        self._wait_for_others(member)
        has_permit = caller.take(member.place, member.left_s)
        if has_permit:
            self._wait_for_return(member, caller)
        joined = self._settled(member, has_permit=has_permit)
        if joined is None:
            raise caller.refusal()
        if joined.first is not member:
            if has_permit:
                caller.give_back(member.place)
            return joined.result_of(member, caller)
        try:
            began_s = monotonic()
            joined.run()
            self._note(joined)
            self._expect(joined, began_s)
        finally:
            joined.end()
            for other in joined.members[1:]:
                caller.withdraw(other.place)  # now, so that its thread wakes once
            caller.give_back(member.place)
        found = joined.result_of(member, caller)
        requests = len(joined.members) if joined.shared_count else 1
        self.gain.note(found.ended_ns - found.began_ns, requests)
        return found

    def _expect(self, joined: JoinedRun, began_s: float) -> None:
        """Have the next request wait for the clients of a run of several that began then."""
        ended_s = monotonic()
        with self._changed:
            is_shared = len(joined.members) > 1
            self._returning = sum(each.size for each in joined.members) if is_shared else 0
            self._return_until_s = ended_s + RETURN * (ended_s - began_s)

    def _wait_for_others(self, member: Member) -> None:
        """Wait until a batch is full, another one takes this along, or the delay is over."""
        if self._delay_s:
            self._wait(member, self._size_max, self._delay_s)

    def _wait_for_return(self, member: Member, caller: Caller) -> None:
        """Wait, with a permit, until as many rows are there as the last joined run had."""
        left_s = self._return_until_s - monotonic()
        if self._returning and left_s > 0 and caller.waiting_count < len(self._waiting):
            self._wait(member, self._returning, left_s)

    def _wait(self, member: Member, rows: int, limit_s: float) -> None:
        """Wait for rows that may be joined with a request, its own included."""
        left_s = member.left_s

        def is_over() -> bool:
            alike = [each.size for each in self._waiting if each.key == member.key]
            return member.joined is not None or member.has_left or sum(alike) >= rows

        with self._changed:
            self._changed.wait_for(is_over, limit_s if left_s is None else min(limit_s, left_s))

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
        self._batch(first, self._waiting)
        self._waiting = [each for each in self._waiting if each.joined is None]
        self._changed.notify_all()

    def _batch(self, first: Member, waiting: Sequence[Member]) -> JoinedRun:
        """Return the run of a request and of those alike that fit into its batch."""
        members, size = [first], first.size
        for each in waiting:
            is_alike = each.key == first.key and each is not first and not each.has_left
            if is_alike and size + each.size <= self._size_max:
                members.append(each)
                size += each.size
        if len(members) > 1:
            size = self._sizes.size_for(first.key, size)
        joined = JoinedRun(tuple(members), size)
        for each in members:
            each.joined = joined
        return joined
