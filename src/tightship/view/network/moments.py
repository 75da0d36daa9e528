"""Follows a plan step by step: pending readers of each value, and memory that waits for another.

The counters and the boxes of free memory are those of the MXNet memory note, with the addresses of
the plan.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tightship.view.network.network import Network, Value

Interval = tuple[int, int]
_NAMES_MAX = 3
_LOOKED_AT_MAX = 500
"""Values that are looked at for the last ones that lay in a box."""


@dataclass(frozen=True, slots=True)
class FreeBox:
    """Bytes of the arena that values have held before and none holds now.

    Attributes:
        offset_bytes: Start in the arena.
        size_bytes: Size.
        last: Names of the last values that lay there, the latest first.
    """

    offset_bytes: int
    size_bytes: int
    last: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """State while a step runs; its counters are those after it.

    Attributes:
        step: Index of the step.
        live: Values and scratch that hold bytes of the arena.
        counters: Number of steps that are still to read each value which the step read or wrote.
        released: Values whose bytes are free after the step.
        free: Memory that waits, by rising offsets.
    """

    step: int
    live: tuple[int, ...]
    counters: dict[int, int]
    released: tuple[int, ...]
    free: tuple[FreeBox, ...]


def moments(network: Network) -> Iterator[Moment]:
    """Yield the state at each step, in order."""
    starts, stops = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for index, value in enumerate(network.values):
        if value.is_planned:
            starts[value.start_step].append(index)
            stops[value.stop_step].append(index)
    live: dict[int, None] = {}
    used: list[Interval] = []
    ended: list[Value] = []
    for step in range(len(network.steps)):
        for index in stops[step]:
            live.pop(index, None)
            ended.append(network.values[index])
        live.update(dict.fromkeys(starts[step]))
        held = _merged((v.offset_bytes, v.end_bytes) for v in map(network.values.__getitem__, live))
        used = _merged([*used, *held])
        yield Moment(
            step, tuple(live), _touched(network, step), tuple(stops[step + 1]),
            tuple(_box(interval, ended) for interval in _without(used, held)),
        )  # fmt: skip


def moment_at(network: Network, step: int) -> Moment:
    """Return the state at one step."""
    return next(moment for moment in moments(network) if moment.step == step)


def pending(value: Value, step: int) -> int:
    """Count the steps after `step` that read a value."""
    return len(value.readers) - bisect_right(value.readers, step)


def _touched(network: Network, step: int) -> dict[int, int]:
    touched = (*network.reads[step], *network.writes[step])
    return {value: pending(network.values[value], step) for value in touched}


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for low, high in sorted(intervals):
        if found and low <= found[-1][1]:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found


def _without(whole: Sequence[Interval], parts: Sequence[Interval]) -> Iterator[Interval]:
    """Yield what of merged intervals no other merged interval covers."""
    for low, high in whole:
        at = low
        for start, stop in parts:
            if stop > at and start < high:
                if start > at:
                    yield at, start
                at = stop
        if at < high:
            yield at, high


def _box(interval: Interval, ended: Sequence[Value]) -> FreeBox:
    low, high = interval
    names = [
        value.name
        for value in ended[: -_LOOKED_AT_MAX - 1 : -1]
        if value.offset_bytes < high and low < value.end_bytes
    ]
    return FreeBox(low, high - low, tuple(names[:_NAMES_MAX]))
