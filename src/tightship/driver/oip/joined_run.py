"""Run of requests that are joined along the first dimension of their tensors."""

import threading
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from functools import partial
from time import monotonic_ns

import numpy as np

from tightship._core import Place, StopFlag
from tightship.driver.oip.caller import Caller
from tightship.driver.oip.infer_request import InputTensor
from tightship.driver.oip.inference import Bound, refusal_of, run
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code
from tightship.driver.oip.tensors import Array
from tightship.errors import TightshipError
from tightship.model.row_blocks import RowBlocks
from tightship.model.session_opener import copied_inputs

Key = tuple[tuple[str, tuple[int, ...]], ...]
"""Shapes of a request's inputs by name, without the batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Ran:
    """Outputs of a request by name, and when its run began and ended, by `monotonic_ns`."""

    results: dict[str, Array]
    began_ns: int
    ended_ns: int


def key_of(inputs: Sequence[InputTensor]) -> Key:
    """Return the shapes of a request's inputs by name, without the batch."""
    return tuple(sorted([(each.name, each.shape[1:]) for each in inputs]))


class Member:
    """Request of a batch, or one that waits to be of one.

    Attributes:
        key: Shapes of the inputs without the batch; requests with equal ones may be joined.
        size: Rows of its inputs.
        joined: Run that it is part of; None while it waits.
        has_left: Whether its caller has left.
        is_gone: Whether its thread no longer waits, so that its tensors must not be read.
        woken: Set when its run has ended, or its caller has left.
        ran: Result; None before, or if it failed.
        error: Why it failed.
    """

    def __init__(self, bound: Bound, place: Place, asked_ns: int) -> None:
        self.bound, self.place, self.asked_ns = bound, place, asked_ns
        self.key = key_of(bound.request.inputs)
        self.size: int = next(iter(bound.arrays.values())).shape[0]
        self.joined: JoinedRun | None = None
        self.has_left = self.is_gone = False
        self.woken = threading.Event()
        self.ran: Ran | None = None
        self.error: Exception | None = None

    @property
    def left_s(self) -> float | None:
        """Seconds until its deadline; None without one."""
        return self.bound.request.left_s(self.asked_ns)

    def leave(self) -> None:
        """Note that the caller has left; the run ends once all have."""
        self.has_left = True
        self.woken.set()
        joined = self.joined
        if joined is not None:
            joined.stop_if_left()

    def take(self) -> Ran:
        """Return the result, which is not kept.

        Raises:
            OipError: The run failed.
        """
        if self.error is not None:
            raise self.error
        ran, self.ran = self.ran, None
        assert ran is not None
        return ran

    def end(self) -> None:
        """Forget the run, which refers to its members, so that their tensors go with the last."""
        self.joined = None


class JoinedRun:
    """Run of one or more requests, in the thread of the first.

    Attributes:
        members: Requests in the order of their rows.
        size: Rows of a run of all, of which the last may be of no request.
    """

    def __init__(self, members: Sequence[Member], size: int) -> None:
        self.members, self.size = members, size
        self._stop = StopFlag()
        self._has_read = threading.Event()
        self._giving_up = threading.Lock()

    @property
    def first(self) -> Member:
        """Request whose thread runs."""
        return self.members[0]

    @property
    def shared_count(self) -> int:
        """Requests with a result beyond the first of those that ran together."""
        began = [each.ran.began_ns for each in self.members if each.ran and not each.has_left]
        return len(began) - len(set(began))

    def stop_if_left(self) -> None:
        """End the run after its current step if it is for no caller any more."""
        if all(each.has_left for each in self.members):
            self._stop.set()

    def run(self) -> None:
        """Run, and give every request its rows, or the error of running it alone."""
        self.stop_if_left()
        if len(self.members) > 1:
            try:
                self._run_joined()
            except OipError:
                pass  # of one request, or a shortage of memory that less rows may not meet
            else:
                return
        self._run_each()

    def end(self) -> None:
        """Release those that wait for the run, however it ended."""
        self._has_read.set()
        for each in self.members:
            if each.ran is None and each.error is None:
                each.error = OipError("the run has failed", Code.INTERNAL)
            each.woken.set()

    def result_of(self, member: Member, caller: Caller) -> Ran:
        """Wait for the result of a request; its neighbours go on if it gives up.

        Raises:
            OipError: The caller leaves, the time is over, or the run fails.
        """
        member.woken.wait(member.left_s)
        is_late = member.left_s == 0
        if member.has_left or is_late:
            self._give_up(member)
            raise caller.refusal()
        return member.take()

    def _give_up(self, member: Member) -> None:
        """Wait until a request's tensors are not read; they may lie in regions that go then."""
        while not member.is_gone:
            self._has_read.wait()
            with self._giving_up:
                member.is_gone = self._has_read.is_set()

    def _run_each(self) -> None:
        """Run the requests one by one, those that have been given up left out."""
        with self._giving_up:
            self._has_read.clear()
            left = [each for each in self.members if not each.is_gone]
        for each in left:
            self._run_alone(each)

    def _run_joined(self) -> None:
        """Run all at once.

        Raises:
            OipError: The run fails, or the model did not make a row for each of the inputs.
        """
        bounds = [each.bound for each in self.members]
        model, began_ns = bounds[0].model, monotonic_ns()
        lefts = [each.left_s for each in self.members]
        known = [each for each in lefts if each is not None]
        timeout_s = max(known) if len(known) == len(lefts) else None
        free = self.size - sum(each.size for each in self.members)
        try:
            arrays = _joined(bounds, free, copied_inputs(model), self._has_read.set)
            results = model.run(arrays, timeout_s=timeout_s, stop=self._stop)
        except (TightshipError, MemoryError) as error:
            raise refusal_of(error, model) from error
        if any(array.shape[:1] != (self.size,) for array in results.values()):
            raise OipError(f"the outputs of a batch do not have {self.size} rows", Code.INTERNAL)
        ended_ns, start = monotonic_ns(), 0
        for each in self.members:
            rows = slice(start, start + each.size)
            own = {name: array[rows] for name, array in results.items()}
            each.ran, start = Ran(own, began_ns, ended_ns), rows.stop

    def _run_alone(self, member: Member) -> None:
        began_ns = monotonic_ns()
        if member.has_left:
            return
        try:
            results = run(member.bound, member.asked_ns, self._stop)
        except (TightshipError, MemoryError) as error:
            member.error = error
        else:
            member.ran = Ran(results, began_ns, monotonic_ns())


def _joined(
    bounds: Sequence[Bound], free: int, copied: Set[str], on_read: Callable[[], None]
) -> dict[str, Array | RowBlocks]:
    """Return the inputs of requests, one behind another.

    Args:
        bounds: The requests.
        free: Further rows that belong to no request; they repeat the first, which is valid if the
            batch is.
        copied: Inputs that a run copies, so that they are not joined before.
        on_read: Called once the tensors of the requests are not read any more.
    """
    left = set(copied) & bounds[0].arrays.keys()
    arrays: dict[str, Array | RowBlocks] = {}

    def has_read(name: str) -> None:
        left.discard(name)
        if not left:
            on_read()

    for name in bounds[0].arrays:
        blocks = [each.arrays[name] for each in bounds]
        blocks += [blocks[0][:1]] * free
        arrays[name] = (
            RowBlocks(blocks, partial(has_read, name)) if name in copied else np.concatenate(blocks)
        )
    if not left:
        on_read()
    return arrays
