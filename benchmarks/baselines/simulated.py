"""Simulate other allocators by their published rules, and print what they would hold of a trace.

    python -m benchmarks.baselines.simulated TRACE...

Sizes and addresses only: no memory is asked for, and no time is taken.
"""

import argparse
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tightship.cli.trace_file import read_any_trace
from tightship.trace.replay import trace_columns

KIB, MIB = 1 << 10, 1 << 20
REGION_GAP = 1 << 50  # addresses between two regions, which never join

Columns = tuple[NDArray[np.int64], NDArray[np.int64]]


def rounded(size_bytes: int, unit_bytes: int) -> int:
    """The next multiple, one at least."""
    return max(-(-size_bytes // unit_bytes), 1) * unit_bytes


@dataclass(slots=True)
class Heap:
    """Pieces of regions. Free neighbours join; the smallest free one that is enough is taken."""

    held_bytes: int = 0
    _free: list[tuple[int, int]] = field(default_factory=list)  # bytes, address
    _free_by_start: dict[int, int] = field(default_factory=dict)  # bytes
    _free_by_stop: dict[int, int] = field(default_factory=dict)  # bytes
    _next_start: int = 0

    def add(self, size_bytes: int, *, behind: bool) -> None:
        """A free piece: behind the last one, or a region of its own."""
        start = self._next_start + (0 if behind else REGION_GAP)
        self._next_start = start + size_bytes
        self.held_bytes += size_bytes
        self.give_back(start, size_bytes)

    def smallest(self, size_bytes: int) -> list[tuple[int, int]]:
        """Size and address of the two smallest free pieces that are enough."""
        first = bisect_left(self._free, (size_bytes, 0))
        return self._free[first : first + 2]

    def tail_bytes(self) -> int:
        """Return the free bytes at the very end."""
        return self._free_by_stop.get(self._next_start, 0)

    def is_tail(self, piece: tuple[int, int]) -> bool:
        """Whether nothing lies behind it."""
        return sum(piece) == self._next_start

    def take(self, piece: tuple[int, int], size_bytes: int) -> int:
        """Address of the first `size_bytes` of a free piece; the rest is free."""
        whole_bytes, start = piece
        self._drop(start, whole_bytes)
        if whole_bytes > size_bytes:
            self._keep(start + size_bytes, whole_bytes - size_bytes)
        return start

    def give_back(self, start: int, size_bytes: int) -> None:
        """Joins it with its free neighbours."""
        if before := self._free_by_stop.get(start):
            self._drop(start - before, before)
            start, size_bytes = start - before, size_bytes + before
        if after := self._free_by_start.get(start + size_bytes):
            self._drop(start + size_bytes, after)
            size_bytes += after
        self._keep(start, size_bytes)

    def _keep(self, start: int, size_bytes: int) -> None:
        insort(self._free, (size_bytes, start))
        self._free_by_start[start] = self._free_by_stop[start + size_bytes] = size_bytes

    def _drop(self, start: int, size_bytes: int) -> None:
        del self._free[bisect_left(self._free, (size_bytes, start))]
        del self._free_by_start[start], self._free_by_stop[start + size_bytes]


Block = tuple[Heap, int, int]
"""Heap of a block, its address and bytes."""


class Allocator(Protocol):
    """A simulation; what it gave goes back to its heap."""

    @property
    def held_bytes(self) -> int:
        """Bytes requested from the system."""
        ...

    def allocate(self, size_bytes: int) -> Block:
        """A block."""
        ...


@dataclass(slots=True)
class SmallAndLarge:
    """Two heaps: for small blocks, and for large ones."""

    heaps: tuple[Heap, Heap] = field(default_factory=lambda: (Heap(), Heap()))

    @property
    def held_bytes(self) -> int:
        """Bytes of both heaps, which give nothing back."""
        return sum(heap.held_bytes for heap in self.heaps)


@dataclass(slots=True)
class Caching(SmallAndLarge):
    """PyTorch's caching allocator for devices, on one stream.

    Sizes are multiples of 512 bytes. Blocks of at most 1 MiB are cut from segments of 2 MiB, those
    below 10 MiB from segments of 20 MiB; larger ones have segments of their own, in multiples of
    2 MiB. A large block is given whole unless more than 1 MiB is left of it.
    """

    def allocate(self, size_bytes: int) -> Block:
        """Take a block from a segment for its size."""
        size_bytes = rounded(size_bytes, 512)
        is_large = size_bytes > MIB
        heap = self.heaps[is_large]
        if not heap.smallest(size_bytes):
            shared_bytes = 20 * MIB if is_large else 2 * MIB
            own = size_bytes >= 10 * MIB
            heap.add(rounded(size_bytes, 2 * MIB) if own else shared_bytes, behind=False)
        piece = heap.smallest(size_bytes)[0]
        is_cut = piece[0] - size_bytes > (MIB if is_large else 0)
        taken_bytes = size_bytes if is_cut else piece[0]
        return heap, heap.take(piece, taken_bytes), taken_bytes


@dataclass(slots=True)
class Expandable(SmallAndLarge):
    """PyTorch with `expandable_segments`, on one stream.

    Two ranges that grow at their end: by 2 MiB for blocks of at most 1 MiB, by 20 MiB for others.
    Blocks are multiples of 512 bytes; the end of a range is taken only where nothing else fits.
    Pages in between stay.
    """

    def allocate(self, size_bytes: int) -> Block:
        """Allocate from the range of the size."""
        size_bytes = rounded(size_bytes, 512)
        is_large = size_bytes > MIB
        heap, page_bytes = self.heaps[is_large], 20 * MIB if is_large else 2 * MIB
        fitting = heap.smallest(size_bytes)
        if not fitting:
            heap.add(rounded(size_bytes - heap.tail_bytes(), page_bytes), behind=True)
            fitting = heap.smallest(size_bytes)
        piece = fitting[-1] if heap.is_tail(fitting[0]) else fitting[0]
        return heap, heap.take(piece, size_bytes), size_bytes


@dataclass(slots=True)
class Growing:
    """One range that grows at its end by 1 MiB. Blocks are multiples of 512 bytes."""

    heap: Heap = field(default_factory=Heap)

    @property
    def held_bytes(self) -> int:
        """Bytes of the range."""
        return self.heap.held_bytes

    def allocate(self, size_bytes: int) -> Block:
        """The smallest piece that is enough."""
        size_bytes = rounded(size_bytes, 512)
        if not self.heap.smallest(size_bytes):
            self.heap.add(rounded(size_bytes - self.heap.tail_bytes(), MIB), behind=True)
        piece = self.heap.smallest(size_bytes)[0]
        return self.heap, self.heap.take(piece, size_bytes), size_bytes


@dataclass(slots=True)
class BestFitCoalescing:
    """TensorFlow's and ONNX Runtime's BFC arena, whose regions are never given back.

    Blocks are multiples of 256 bytes; one is cut where that leaves as much again, or 128 MiB. A new
    region is twice the last one, up to 1 GiB, or else just what is asked for.
    """

    doubles: bool
    region_bytes: int = MIB
    heap: Heap = field(default_factory=Heap)

    @property
    def held_bytes(self) -> int:
        """Bytes of all regions."""
        return self.heap.held_bytes

    def allocate(self, size_bytes: int) -> Block:
        """Allocate from any region."""
        size_bytes = rounded(size_bytes, 256)
        if not self.heap.smallest(size_bytes):
            self.heap.add(self._next_region(size_bytes), behind=False)
        piece = self.heap.smallest(size_bytes)[0]
        is_cut = piece[0] >= 2 * size_bytes or piece[0] - size_bytes >= 128 * MIB
        taken_bytes = size_bytes if is_cut else piece[0]
        return self.heap, self.heap.take(piece, taken_bytes), taken_bytes

    def _next_region(self, size_bytes: int) -> int:
        if not self.doubles:
            return size_bytes
        has_grown = self.region_bytes < size_bytes
        while self.region_bytes < size_bytes:
            self.region_bytes *= 2
        result = self.region_bytes
        if not has_grown:
            self.region_bytes = min(2 * self.region_bytes, 1 << 30)
        return result


SIMULATED: dict[str, Callable[[], Allocator]] = {
    "PyTorch": Caching,
    "PyTorch, expandable segments": Expandable,
    "BFC, doubling": lambda: BestFitCoalescing(doubles=True),
    "BFC, regions to fit": lambda: BestFitCoalescing(doubles=False),
}


def peak_held_bytes(allocator: Allocator, columns: Columns) -> int:
    """Plays a trace; regions are never given back, so that the end is the peak."""
    live: dict[int, Block] = {}
    for slot, size_bytes in zip(*(column.tolist() for column in columns), strict=True):
        if slot >= 0:
            live[slot] = allocator.allocate(size_bytes)
        else:
            heap, start, taken_bytes = live.pop(~slot)
            heap.give_back(start, taken_bytes)
    return allocator.held_bytes


def divided(columns: Columns, limit_bytes: int) -> tuple[Columns, Columns]:
    """The blocks of a trace of at most `limit_bytes`, and the others."""
    is_small: dict[int, bool] = {}
    chosen = np.empty(len(columns[0]), bool)
    for row, (slot, size_bytes) in enumerate(
        zip(*(column.tolist() for column in columns), strict=True)
    ):
        if slot >= 0:
            is_small[slot] = size_bytes <= limit_bytes
        chosen[row] = is_small[slot if slot >= 0 else ~slot]
    small, large = ((columns[0][rows], columns[1][rows]) for rows in (chosen, ~chosen))
    return small, large


def main() -> None:
    """Prints what each simulation would hold of recorded traces."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    for path in parser.parse_args().traces:
        columns = trace_columns(read_any_trace(path))
        for name, make in SIMULATED.items():
            print(f"{path.name}  {name:32} {peak_held_bytes(make(), columns):>16,} bytes")


if __name__ == "__main__":
    main()
