"""Divides the bytes of an arena at one step among the tensors that are live there."""

from collections.abc import Mapping

from tightship.view.picture import Picture, Rectangle


def occupancy(picture: Picture, step: int) -> Mapping[int, int]:
    """Return the bytes of each live tensor by its index; those shared count for the first one.

    Tensors that share bytes, as an output written over its input, count them once: for the tensor
    that had them first, and of those that began together for the largest.
    """
    live = [(index, r) for index, r in enumerate(picture.rectangles) if r.is_live(step)]
    live.sort(key=_first_and_largest)
    taken: list[tuple[int, int]] = []
    found: dict[int, int] = {}
    for index, rectangle in live:
        start, stop = rectangle.offset_bytes, rectangle.offset_bytes + rectangle.size_bytes
        found[index] = stop - start - _overlap(taken, start, stop)
        taken = _joined([*taken, (start, stop)])
    return found


def live_bytes(picture: Picture, step: int) -> int:
    """Return the live bytes of a step; 0 for a plan without steps."""
    return picture.steps[step].live_bytes if picture.steps else 0


def _first_and_largest(pair: tuple[int, Rectangle]) -> tuple[int, int, int]:
    index, rectangle = pair
    return rectangle.start_step, -rectangle.size_bytes, index


def _overlap(ranges: list[tuple[int, int]], start: int, stop: int) -> int:
    return sum(max(0, min(stop, end) - max(start, begin)) for begin, end in ranges)


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return disjoint ranges of the same bytes, in order."""
    found: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found.append((start, stop))
    return found
