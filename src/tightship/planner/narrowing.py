"""Finds the smallest number for which something can be found, by a sequence of questions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from tightship._core import StopFlag

Found = TypeVar("Found")

BOUND_SHARE = 2
"""The first question, about the bound itself, may take one part in `BOUND_SHARE` of the effort."""

FIRST_SHARE = 4
"""Each question of the next round may take one part in `FIRST_SHARE` of the effort left."""

STEPS = 4
"""Questions in a round; each halves the distance between the open and the reached number."""


@dataclass(frozen=True, slots=True)
class Tried(Generic[Found]):
    """The answer to a question, and the effort it took.

    With `found`, `number` is the number that `found` reaches. Without, `number` is a proved lower
    bound, or None if the question stays open.
    """

    found: Found | None
    number: int | None
    effort: int


@dataclass(frozen=True, slots=True)
class Narrowed(Generic[Found]):
    """A solution that reaches a smaller number, or None, and the lower bound proved so far."""

    found: Found | None
    bound: int


def narrow(
    try_at: Callable[[int, int], Tried[Found]],
    reached: int,
    bound: int,
    *,
    effort: int,
    stop: StopFlag | None = None,
) -> Iterator[Narrowed[Found]]:
    """Ask for smaller numbers than the one reached until it meets the bound or the effort ends.

    The bound itself is tried first. If that question stays open, the numbers halfway from the last
    open number to the one reached follow. Each round allows its questions twice the effort of the
    round before.

    Args:
        try_at: Looks for a solution that reaches at most a number, with at most an effort.
        reached: The smallest number reached so far.
        bound: A lower bound on the number.
        effort: Effort that all questions may take together.
        stop: Flag that ends the questions when another thread sets it.

    Yields:
        Each smaller solution and each higher bound.
    """
    share = max(1, effort // BOUND_SHARE)
    still_open = target = bound
    for turn in count():
        if effort <= 0 or reached <= bound or (stop and stop.is_set()):
            return
        tried = try_at(target, min(share, effort))
        effort -= max(tried.effort, 1)  # at least 1, so that free answers cannot repeat for ever
        if tried.number is None:
            still_open = target
        elif tried.found is not None:
            reached = tried.number
            yield Narrowed(tried.found, bound)
        else:
            bound = min(tried.number, reached)
            yield Narrowed(None, bound)
        if turn % STEPS == 0:
            share = max(1, effort // FIRST_SHARE) if turn == 0 else 2 * share
            still_open = bound
        still_open = max(still_open, bound)
        target = still_open + (reached - still_open) // 2
