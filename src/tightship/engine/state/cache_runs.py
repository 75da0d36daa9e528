"""Pages in which the rows of caches lie: those that rows need, and those that whole rows fill."""

import mmap
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightship.engine.state.decoder import Cache
from tightship.graph import element_count, size_bytes

ALIGNMENT = 64
PAGE = mmap.PAGESIZE
Pages = NDArray[np.int64]
"""A page for each run."""


class CacheRuns(NamedTuple):
    """Runs of caches that lie one behind another: rows that are consecutive in memory.

    A cache `[1, heads, rows, length]` has a run for each head. A page belongs to the run that
    begins in it, or that it lies in; so runs share none.

    Attributes:
        offsets: First byte of each cache.
        starts: First byte of each run.
        row_bytes: Bytes of a row of each run.
        rows: Rows of each run.
        size_bytes: Bytes of all caches.
        first: First page of each run.
        end: Page behind the last of each run.
        inner: First page of each run in which no other run has bytes.
    """

    offsets: tuple[int, ...]
    starts: Pages
    row_bytes: Pages
    rows: int
    size_bytes: int
    first: Pages
    end: Pages
    inner: Pages

    @staticmethod
    def of(caches: Sequence[Cache]) -> "CacheRuns":
        """Lay caches out."""
        offsets, end = [], 0
        starts: list[NDArray[Any]] = []
        rows: list[NDArray[Any]] = []
        for cache in caches:
            axis = cache.pair.axis
            count = element_count(cache.shape[:axis])
            row = size_bytes(cache.dtype, cache.shape[axis + 1 :])
            starts.append(end + np.arange(count) * (cache.shape[axis] * row))
            rows.append(np.full(count, row))
            offsets.append(end)
            end += -(-size_bytes(cache.dtype, cache.shape) // ALIGNMENT) * ALIGNMENT
        start = np.concatenate(starts).astype(np.int64)
        first = start // PAGE
        stop = np.append(first[1:], -(-end // PAGE))
        inner = np.minimum(-(-start // PAGE), stop)
        return CacheRuns(
            tuple(offsets), start, np.concatenate(rows).astype(np.int64),
            caches[0].shape[caches[0].pair.axis], end, first, stop, inner,
        )  # fmt: skip

    def after(self, rows: int) -> Pages:
        """Return the byte behind the first rows of each run."""
        return self.starts + rows * self.row_bytes

    def needed(self, rows: int) -> Pages:
        """Return the page behind those that the first rows need."""
        if rows == 0:
            return self.first
        return np.minimum(np.maximum(-(-self.after(rows) // PAGE), self.first + 1), self.end)

    def whole(self, rows: int) -> Pages:
        """Return the page behind those that the first rows fill, and nothing else is in."""
        return np.maximum(np.minimum(self.after(rows) // PAGE, self.end), self.inner)

    def rows_in(self, pages: Pages) -> int:
        """Return the rows that each run has in its pages before `pages`."""
        rows = (pages * PAGE - self.starts) // self.row_bytes
        return max(0, int(np.min(np.where(pages < self.end, rows, self.rows))))

    def page_count(self, rows: int) -> int:
        """Return the pages that the first rows need in all."""
        return int((self.needed(rows) - self.first).sum())
