"""The smallest number for which something can be found, by one question after another."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Generic, TypeVar

from tightship._core import StopFlag

Found = TypeVar("Found")

BOUND_SHARE = 2
"""The first question, about the bound itself, may take one part in so many of the effort."""

FIRST_SHARE = 4
"""Each question of the next round may take one part in so many of what is left."""

STEPS = 4
"""How often a round halves the distance between what is open and what is found."""


@dataclass(frozen=True, slots=True)
class Tried(Generic[Found]):
    """The answer to a question, and the effort it took.

    With `found`, `number` is what it reaches; without, no smaller one is possible. A `number` of
    None leaves the question open.
    """

    found: Found | None
    number: int | None
    effort: int


@dataclass(frozen=True, slots=True)
class Narrowed(Generic[Found]):
    """Something that reaches a smaller number, or None, and the bound that is proved by now."""

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
    """Ask for less than what is reached until it meets the bound, or the effort ends.

    The bound itself is tried first. Where that stays open, numbers between it and what is reached
    are, each time half as far from the last that stayed open; the next round may take twice the
    effort for each.

    Args:
        try_at: Looks for something that reaches a number at most, with an effort at most.
        reached: The smallest number reached.
        bound: No smaller number can be.
        effort: What all questions may take together.
        stop: Set from another thread, it ends the questions.
    """
    share = max(1, effort // BOUND_SHARE)
    still_open = target = bound
    for turn in count():
        if effort <= 0 or reached <= bound or (stop and stop.is_set()):
            return
        tried = try_at(target, min(share, effort))
        effort -= max(tried.effort, 1)
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
