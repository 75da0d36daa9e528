"""Pages of caches in a file of memory, which several sessions show and none writes."""

import fcntl
import os
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship._core import PageRange
from tightship.engine.state.cache_runs import PAGE, Pages
from tightship.engine.state.page_count import PageCount, PageGiver
from tightship.errors import OutOfMemoryError

NAME = "tightship rows"
SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
Bytes = NDArray[Any]


class SharedRows:
    """Consecutive whole pages of each run, with the rows of tokens that sessions have in common.

    Attributes:
        file: Descriptor of the file, without a name.
        low: First page of each run.
        high: Page behind the last of each run; falls as sessions forget tokens.
        pages: Count of the pages.
        is_sealed: Whether the file cannot be changed any more, as other processes may show it.
    """

    def __init__(
        self, low: Pages, giver: PageGiver | None, name: str = NAME, file: int | None = None
    ) -> None:
        """Make a file without pages.

        Args:
            low: First page of each run.
            giver: Counts the pages.
            name: Name of the file, by which other processes know it.
            file: Descriptor of a file that is there; this object closes it.

        Raises:
            OutOfMemoryError: The system refuses a file.
        """
        try:
            flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
            self.file = os.memfd_create(name, flags) if file is None else file
        except OSError as error:
            raise _refused(error) from None
        weakref.finalize(self, os.close, self.file)
        self.low, self.high = low, low.copy()
        self.pages = PageCount(giver, self)
        self.is_sealed = False
        self._offsets = np.zeros_like(low)
        self._lock = threading.Lock()
        self._users: weakref.WeakKeyDictionary[object, Pages] = weakref.WeakKeyDictionary()

    @staticmethod
    def opened(file: int, low: Pages, high: Pages, giver: PageGiver | None) -> "SharedRows":
        """Return the rows of another process's sealed file, which has all pages of each run.

        Raises:
            CapacityError: The giver's cap does not hold the pages.
        """
        shared = SharedRows(low, giver, file=file)
        shared.pages.take(int((high - low).sum()))
        shared.high, shared.is_sealed = high, True
        shared._offsets = np.cumsum(high - low) - (high - low)
        return shared

    def seal(self, high: Pages) -> bool:
        """Forbid all changes; returns False if a run lacks pages up to `high`."""
        if np.array_equal(self.high, high):
            fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, SEALS)
            self.is_sealed = True
        return self.is_sealed

    def fill(self, memory: PageRange, high: Pages, user: object) -> None:
        """Move pages of a session into the file, which the session then shows.

        Whatever fails, the session has what it had.

        Raises:
            OutOfMemoryError: The system refuses pages of the file; some have been moved.
        """
        array, end = memory.array(), 0
        try:
            for run in np.flatnonzero(high > self.low):
                low, stop = int(self.low[run]), int(high[run])
                _write(self.file, array[low * PAGE : stop * PAGE], end * PAGE)
                self._offsets[run] = end
                one = slice(run, run + 1)
                if memory.show(self.low[one], high[one], self.file, self._offsets[one]):
                    self.high[run] = stop
                    end += stop - low
        except OSError as error:
            raise _refused(error) from None
        finally:
            with self._lock:
                self._users[user] = self.high.copy()

    def show(self, memory: PageRange, at: Pages, limit: Pages, user: object) -> Pages:
        """Show pages up to a limit in another session's range, where they follow its own last.

        Args:
            memory: The range.
            at: Page of each run up to which the session shows others.
            limit: Page behind the last that may be shown.
            user: The session's rows.

        Returns:
            The page up to which each run is shown now.
        """
        high = np.minimum(self.high, limit)
        runs = np.flatnonzero((at == self.low) & (high > self.low))
        starts, stops = self.low[runs], high[runs]
        done = memory.show(starts, stops, self.file, self._offsets[runs])
        shown = at.copy()
        shown[runs[:done]] = stops[:done]
        with self._lock:
            self._users[user] = shown
        return shown

    def show_again(self, memory: PageRange, run: int, start: int, stop: int) -> None:
        """Show pages of a run, which the session showed before."""
        offset = self._offsets[run] + start - self.low[run]
        memory.show(np.array([start]), np.array([stop]), self.file, np.array([offset]))

    def forget(self, limit: Pages, user: object) -> bool:
        """Note the page up to which a session still shows; free what none shows.

        Returns:
            Whether the session shows any page.
        """
        with self._lock:
            own = np.minimum(self._users[user], limit)
            if np.any(own > self.low):
                self._users[user] = own
            else:
                del self._users[user]
            is_used, users = user in self._users, list(self._users.values())
            is_free = users and not self.is_sealed
            freed = self._punch(np.max(users, axis=0)) if is_free else 0
        self.pages.give(freed)
        return is_used

    def _punch(self, high: Pages) -> int:
        """Free the pages from `high` on; return their number."""
        high = np.clip(high, self.low, self.high)
        for run in np.flatnonzero(high < self.high):
            offset = int(self._offsets[run] + high[run] - self.low[run])
            PageRange.free(self.file, offset, int(self.high[run] - high[run]))
        freed = int((self.high - high).sum())
        self.high = high
        return freed


def _write(file: int, part: Bytes, offset: int) -> None:
    """Write all bytes to a file of memory.

    Raises:
        OSError: The system lacks memory.
    """
    done = 0
    while done < part.size:
        done += os.pwrite(file, part[done:].data, offset + done)


def _refused(error: OSError) -> OutOfMemoryError:
    return OutOfMemoryError(
        f"The system refuses memory that sessions share: {error.strerror}. Close a session.",
        requested_bytes=-1,
    )
