"""Memory of a session's caches: pages that come as rows do, and pages of several sessions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship._core import PageRange
from tightship.engine.state.cache_runs import PAGE, CacheRuns, Pages
from tightship.engine.state.decoder import Cache
from tightship.engine.state.page_count import PageCount, PageGiver
from tightship.engine.state.shared_rows import NAME, SharedRows
from tightship.errors import OutOfMemoryError
from tightship.graph import size_bytes


class CacheRows:
    """Arrays of a session's caches, in one range of small pages.

    Rows in use are the first ones; `reach` prepares further ones for being written. A page is the
    session's own, or a shared one that is read only. Rows that are not in use are zero, except
    those of a shared page until `reach` replaces it.

    Attributes:
        arrays: Caches by the names of their inputs.
        pages: Count of the session's own pages.
    """

    def __init__(
        self, caches: Sequence[Cache], giver: PageGiver | None = None, *, reserved: bool = False
    ) -> None:
        """Reserve addresses for the rows of the whole context.

        Args:
            caches: The caches.
            giver: Counts the pages; None if they are not counted.
            reserved: Whether the system counts the memory of all rows as the process's now, so that
                none is refused later, rather than as rows are reached.

        Raises:
            OutOfMemoryError: The system refuses.
        """
        self._caches, self._giver = tuple(caches), giver
        self._runs = CacheRuns.of(caches)
        try:
            self._memory = PageRange(self._runs.size_bytes)
        except MemoryError:
            raise _refused(self._runs.size_bytes) from None
        self._bytes = self._memory.array()
        self._shared: list[SharedRows] = []
        self._cover, self._backed = self._runs.inner, self._runs.first
        self._ready = 0
        """Rows that may be written as pages are."""
        self._reserved = reserved
        if reserved:
            self._open(self._runs.first, self._runs.end)
        self.pages = PageCount(giver, self)
        self._axes = {cache.pair.past: cache.pair.axis for cache in caches}
        self.arrays: dict[str, NDArray[Any]] = {
            cache.pair.past: self._bytes[offset:][: size_bytes(cache.dtype, cache.shape)]
            .view(cache.dtype.numpy)
            .reshape(cache.shape)
            for cache, offset in zip(caches, self._runs.offsets, strict=True)
        }

    @property
    def shared_bytes(self) -> int:
        """Bytes of the pages that the session shows and does not own."""
        return PAGE * int((self._cover - self._runs.inner).sum())

    @property
    def ready(self) -> int:
        """Rows that may be written without `reach`."""
        return self._ready

    def part(self, name: str, start: int, stop: int) -> NDArray[Any]:
        """Return a view of rows `[start, stop)` of a cache."""
        axis = self._axes[name]
        return self.arrays[name][(slice(None),) * axis + (slice(start, stop),)]

    def axis(self, name: str) -> int:
        """Return the axis of a cache's rows."""
        return self._axes[name]

    def reach(self, start: int, stop: int) -> None:
        """Prepare rows `[start, stop)`, of which the first is the first not in use.

        Raises:
            CapacityError: The cap of pages does not hold them; nothing has changed.
            OutOfMemoryError: The system refuses; rows in use are as they were.
        """
        if stop <= self._ready:
            return
        cover = np.minimum(self._cover, self._runs.whole(start))
        backed = np.maximum(self._backed, self._runs.needed(stop))
        had = self._own(self._cover, self._backed)
        wanted = self._own(cover, backed) - had
        self.pages.take(wanted)
        try:
            self._unshare(cover, start)
            if not self._reserved:
                self._open(self._backed, backed)
            self._backed, self._ready = backed, self._runs.rows_in(backed)
        except OutOfMemoryError:
            self.pages.give(wanted + had - self._own(self._cover, self._backed))
            raise

    def _own(self, cover: Pages, backed: Pages) -> int:
        """Return the number of own pages: those before and behind the shared ones of each run."""
        before = np.minimum(self._runs.inner, backed) - self._runs.first
        return int((before + np.maximum(backed - cover, 0)).sum())

    def _open(self, starts: Pages, stops: Pages) -> None:
        """Open closed pages, all or none.

        Raises:
            OutOfMemoryError: The system refuses.
        """
        runs = np.flatnonzero(stops > starts)
        done = self._memory.open(starts[runs], stops[runs])
        if done < runs.size:
            self._memory.close(starts[runs[:done]], stops[runs[:done]])
            raise _refused(PAGE * int((stops - starts)[runs].sum()))

    def _unshare(self, cover: Pages, rows: int) -> None:
        """Replace shared pages from `cover` on by own ones, which get the first rows of all.

        Raises:
            OutOfMemoryError: The system refuses; pages that were replaced are the session's own.
        """
        after, replaced = self._runs.after(rows), self._cover.copy()
        for run in map(int, np.flatnonzero(cover < self._cover)):
            low, high = int(cover[run]), int(self._cover[run])
            used = self._bytes[low * PAGE : max(int(after[run]), low * PAGE)].copy()
            starts, stops = np.array([low]), np.array([high])
            self._memory.close(starts, stops)
            if not self._memory.open(starts, stops):
                shown = [s for s in self._shared if s.low[run] <= low < s.high[run]]
                shown[-1].show_again(self._memory, run, low, high)
                raise _refused(PAGE * (high - low))
            self._bytes[low * PAGE :][: used.size] = used
            replaced[run] = low
            self._cover = replaced.copy()
        self._forget()

    def clear(self, start: int, stop: int) -> None:
        """Set rows `[start, stop)` to zero, where `stop` is behind all that were reached.

        Whole pages are given back.
        """
        kept = self._runs.needed(start)
        if start:
            self._zero(start, stop, kept)
        backed = np.minimum(self._backed, kept)
        cover = np.minimum(self._cover, np.maximum(kept, self._runs.inner))
        freed = self._own(self._cover, self._backed) - self._own(cover, backed)
        runs = np.flatnonzero(self._backed > kept)
        pages = kept[runs], self._backed[runs]
        if self._reserved:
            self._memory.discard(*pages)
        else:
            self._memory.close(*pages)
        self._cover, self._backed, self._ready = cover, backed, min(self._ready, start)
        self._forget()
        self.pages.give(freed)

    def _zero(self, start: int, stop: int, kept: Pages) -> None:
        """Set rows to zero in own pages that stay."""
        runs = self._runs
        after, last, behind = runs.after(start), runs.after(stop), runs.end * PAGE
        is_own = (kept > self._cover) | (kept <= runs.inner)
        stops = np.where(is_own, np.minimum(last, kept * PAGE), after)
        for low, high in zip(after, stops, strict=True):
            self._bytes[low:high] = 0
        for run in np.flatnonzero(last > behind):  # in the first page of the next run
            self._bytes[max(after[run], behind[run]) : last[run]] = 0

    @property
    def runs(self) -> CacheRuns:
        """Runs of the rows in memory."""
        return self._runs

    def publish(self, start: int, stop: int, name: str) -> SharedRows | None:
        """Move rows `[start, stop)`, which fill whole pages, to a sealed file.

        Returns:
            The file; None if other rows than the first `start` are shared already, or not all pages
            can be.

        Raises:
            OutOfMemoryError: The system refuses; rows in use are as they were.
        """
        if not np.array_equal(self._cover, self._runs.whole(start)):
            return None
        self.share(stop, name)
        last = self._shared[-1] if self._shared else None
        return last if last is not None and last.seal(self._runs.whole(stop)) else None

    def adopt(self, found: Sequence[SharedRows], count: int) -> bool:
        """Show the first rows in place of such that none was reached; returns whether all are.

        None is shown otherwise.

        Args:
            found: Where they are, in order.
            count: Rows that fill whole pages.
        """
        self._show_shared(found, count)
        self._backed = np.where(self._cover > self._runs.inner, self._cover, self._backed)
        if np.array_equal(self._cover, self._runs.whole(count)):
            return True
        self.clear(0, count)
        return False

    def share(self, count: int, name: str = NAME) -> None:
        """Move whole pages of the first rows, which are all in use, to where others can show them.

        Args:
            count: Number of these rows.
            name: Name of the file.

        Raises:
            OutOfMemoryError: The system refuses; rows in use are as they were.
        """
        high = np.maximum(self._runs.whole(count), self._cover)
        if not np.any(high > self._cover):
            return
        if self._reserved:  # its end is not what the system counts from now on
            self._memory.close(self._backed, np.maximum(self._runs.end, self._backed))
            self._reserved = False
        shared = SharedRows(self._cover, self._giver, name)
        try:
            shared.fill(self._memory, high, self)
        finally:
            moved = int((shared.high - shared.low).sum())
            if moved:
                self._shared.append(shared)
                self._cover = shared.high.copy()
                self.pages.move(moved, shared.pages)

    def show(self, other: "CacheRows", count: int) -> None:
        """Get the first rows of another session's caches, into rows none of which was reached.

        Whole pages are shared, and the rest is copied.

        Raises:
            CapacityError: The cap of pages does not hold what is copied.
            OutOfMemoryError: The system refuses.
        """
        other.share(count)
        runs = self._runs
        self._show_shared(other._shared, count)
        needed = runs.needed(count)
        self.pages.take(self._own(self._cover, needed))
        parts = (
            (runs.first, np.minimum(runs.inner, needed)),
            (self._cover, np.maximum(self._cover, needed)),
        )
        after = runs.after(count)
        for starts, stops in parts:
            self._open(starts, stops)
            lows = np.maximum(starts * PAGE, runs.starts)
            for low, high in zip(lows, np.minimum(stops * PAGE, after), strict=True):
                self._bytes[low:high] = other._bytes[low:high]
        for run in np.flatnonzero(after > runs.end * PAGE):  # in the first page of the next run
            low, high = max(runs.starts[run], runs.end[run] * PAGE), after[run]
            self._bytes[low:high] = other._bytes[low:high]
        self._backed = np.maximum(needed, self._cover * (self._cover > runs.inner))

    def copy_from(self, other: "CacheRows", count: int) -> None:
        """Copy the first rows of another session's caches, into rows that were reached."""
        for name in self.arrays:
            self.part(name, 0, count)[...] = other.part(name, 0, count)

    def _show_shared(self, files: Sequence[SharedRows], count: int) -> None:
        """Show pages of the first rows, of each file up to the pages of the next one."""
        limits = [*(shared.low for shared in files[1:]), self._runs.whole(count)]
        for shared, limit in zip(files, limits, strict=False):
            end = np.minimum(limit, self._runs.whole(count))
            self._cover = shared.show(self._memory, self._cover, end, self)
            self._shared.append(shared)
        self._forget()

    def _forget(self) -> None:
        """Leave shared pages that are no longer shown."""
        if self._shared:
            self._shared = [each for each in self._shared if each.forget(self._cover, self)]


def _refused(size_bytes: int) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"The system refuses {size_bytes} bytes for the caches of a session. Choose a smaller "
        "context, or close a session.",
        requested_bytes=size_bytes,
    )
