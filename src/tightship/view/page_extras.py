"""Additions to the page of a plan: another plan, plans for other lengths, a measurement."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from tightship.view.picture import Picture


@dataclass(frozen=True, slots=True)
class Overlay:
    """A plan to compare with, drawn over the steps of the page's own.

    Attributes:
        old: The plan before.
        pairs: Index of the old plan's buffer for each buffer of the page's plan, -1 for a new one.
        places: Where each of the old plan's steps begins on the page's axis of steps, and where the
            last one ends; they never fall.
        rows: What moved the peak: name, reason, and its bytes before and after.
        cause: A sentence on what moved it most; empty if nothing did.
        name: Name of the old plan, as of its file; empty for its title.
    """

    old: Picture
    pairs: tuple[int, ...]
    places: tuple[float, ...]
    rows: tuple[tuple[str, str, int, int], ...] = ()
    cause: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurement of runs, as `tightship run --profile` makes it.

    Attributes:
        step_ns: Median time of each step; empty if it was not timed.
        resident_bytes: Most that was resident beside what the process had before; None if unknown.
        data_bytes: Writable memory that was reserved; None if unknown.
    """

    step_ns: tuple[int, ...] = ()
    resident_bytes: int | None = None
    data_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Extras:
    """Additions to a page.

    Attributes:
        overlay: A plan to compare with, or None.
        measured: A measurement of the plan, or None.
        length_name: Open length that `lengths` are of.
        lengths: Plans for lengths in rising order; the page's own plan is one of them.
    """

    overlay: Overlay | None = None
    measured: Measured | None = None
    length_name: str = ""
    lengths: Sequence[tuple[int, Picture]] = field(default=())


NOTHING = Extras()


def placed_steps(
    step_count: int, old_count: int, pairs: Sequence[tuple[int, int]]
) -> tuple[float, ...]:
    """Place the steps of an old plan on the axis of a new one.

    Matched steps lie over one another, as far as they have the same order; those between are spread
    evenly.

    Args:
        step_count: Steps of the new plan.
        old_count: Steps of the old plan.
        pairs: Matched steps, new and old.

    Returns:
        Places of the beginnings of `old_count` steps, and of the end of the last one.
    """
    anchors = [(0.0, 0)]
    for new, old in sorted(pairs):
        if old > anchors[-1][1] and new >= anchors[-1][0]:
            anchors.append((float(new), old))
    if anchors[-1][1] < old_count:
        anchors.append((float(max(step_count, anchors[-1][0])), old_count))
    places = [0.0]
    for (start, first), (stop, last) in pairwise(anchors):
        width = (stop - start) / (last - first)
        places += [start + width * (old - first) for old in range(first + 1, last + 1)]
    return tuple(places)
