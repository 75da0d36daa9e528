"""Models the allocator of an imperative framework: cached blocks and best fit."""

from bisect import bisect_left, insort
from dataclasses import dataclass

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Policy:
    """Sizes to which requests are rounded and in which segments are obtained, in bytes.

    The defaults are those of PyTorch's caching allocator for accelerators. Requests up to
    `small_max_bytes` are cut from segments of `small_segment_bytes`, others below
    `large_segment_min_bytes` from segments of `large_segment_bytes`. Larger requests have segments
    of their own.
    """

    round_bytes: int = 512
    small_max_bytes: int = MIB
    small_segment_bytes: int = 2 * MIB
    large_segment_min_bytes: int = 10 * MIB
    large_segment_bytes: int = 20 * MIB
    round_segment_bytes: int = 2 * MIB

    def segment_bytes(self, size_bytes: int) -> int:
        """Return the size of the segment that a request of this size obtains from the system."""
        if size_bytes <= self.small_max_bytes:
            return self.small_segment_bytes
        if size_bytes < self.large_segment_min_bytes:
            return self.large_segment_bytes
        return -(-size_bytes // self.round_segment_bytes) * self.round_segment_bytes


@dataclass(slots=True, eq=False)
class _Block:
    size_bytes: int
    is_small: bool
    is_free: bool = False
    before: "_Block | None" = None
    after: "_Block | None" = None


class CachingAllocator:
    """An allocator that keeps freed blocks, splits those that are too large, and joins neighbours.

    `reserved_bytes` counts bytes obtained from the system, which are never returned.
    """

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.allocate_calls = 0
        self.deallocate_calls = 0
        self.system_calls = 0
        self.reserved_bytes = 0
        self.live_bytes = 0
        self.peak_live_bytes = 0
        self._blocks: dict[int, _Block] = {}
        self._free: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
        self._numbers: dict[_Block, int] = {}
        self._made: list[_Block] = []

    def allocate(self, size_bytes: int) -> int:
        """Allocate a block of at least this size and return its number; counts as one call."""
        self.allocate_calls += 1
        size = -(-max(1, size_bytes) // self.policy.round_bytes) * self.policy.round_bytes
        is_small = size <= self.policy.small_max_bytes
        free = self._free[is_small]
        at = bisect_left(free, (size, 0))
        block = self._made[free.pop(at)[1]] if at < len(free) else self._segment(size)
        block.is_free = False
        self._split(block, size)
        self.live_bytes += block.size_bytes
        self.peak_live_bytes = max(self.peak_live_bytes, self.live_bytes)
        return self._numbers[block]

    def deallocate(self, number: int) -> None:
        """Return a block to the cache."""
        self.deallocate_calls += 1
        block = self._made[number]
        assert not block.is_free, number
        self.live_bytes -= block.size_bytes
        for neighbour in (block.before, block.after):
            if neighbour is not None and neighbour.is_free:
                self._take_out(neighbour)
                block = self._join(block, neighbour)
        self._put_in(block)

    def _segment(self, size_bytes: int) -> _Block:
        self.system_calls += 1
        is_small = size_bytes <= self.policy.small_max_bytes
        block = self._number(_Block(self.policy.segment_bytes(size_bytes), is_small))
        self.reserved_bytes += block.size_bytes
        return block

    def _number(self, block: _Block) -> _Block:
        self._numbers[block] = len(self._made)
        self._made.append(block)
        return block

    def _split(self, block: _Block, size_bytes: int) -> None:
        """Split off the bytes that a request leaves, unless they are too few to be useful."""
        rest = block.size_bytes - size_bytes
        # The rest of a large block serves large requests only, so it must be larger than a small
        # one.
        least = self.policy.round_bytes if block.is_small else self.policy.small_max_bytes + 1
        if rest < least:
            return
        tail = self._number(_Block(rest, block.is_small, before=block, after=block.after))
        if block.after is not None:
            block.after.before = tail
        block.size_bytes, block.after = size_bytes, tail
        self._put_in(tail)

    def _join(self, one: _Block, other: _Block) -> _Block:
        first, last = (one, other) if one.after is other else (other, one)
        first.size_bytes += last.size_bytes
        first.after = last.after
        if last.after is not None:
            last.after.before = first
        return first

    def _put_in(self, block: _Block) -> None:
        block.is_free = True
        insort(self._free[block.is_small], (block.size_bytes, self._numbers[block]))

    def _take_out(self, block: _Block) -> None:
        free = self._free[block.is_small]
        del free[bisect_left(free, (block.size_bytes, self._numbers[block]))]
