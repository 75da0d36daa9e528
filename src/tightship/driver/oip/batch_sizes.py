"""Sizes of batches: joined requests run with few sizes, because each has a program of its own."""

from collections import Counter

from tightship.driver.oip.joined_run import Key

OFTEN = 8
"""Batches of a size from which it gets a program of its own, which takes as long as some runs."""
KEPT_AFTER = 2
"""Runs after which a model keeps the program of a size."""
COUNTED_MAX = 1024
"""Sizes that are counted, of all shapes together."""


class BatchSizes:
    """Chooses the size of each batch. The caller serializes calls.

    A batch runs with as many rows as the next power of two, until its own size has come often.
    Clients that come and go make batches of every size: without this, each size would be planned
    when it comes first, while all clients of the batch wait.
    """

    def __init__(self, size_max: int) -> None:
        """Create it for batches of up to `size_max` rows."""
        self._size_max = size_max
        self._seen: Counter[tuple[Key, int]] = Counter()
        self._ran: Counter[tuple[Key, int]] = Counter()

    def size_for(self, key: Key, rows: int) -> int:
        """Return how many rows a batch of `rows` runs with, at least as many.

        Args:
            key: Shapes of its inputs without the batch.
            rows: Rows of its requests.
        """
        if len(self._seen) >= COUNTED_MAX:
            self._seen.clear()
        self._seen[key, rows] += 1
        return self._size(rows, self._seen[key, rows])

    def _size(self, rows: int, times: int) -> int:
        if times > OFTEN:
            return rows
        return max(rows, min(self._size_max, 1 << (rows - 1).bit_length()))

    def note_run(self, key: Key, size: int) -> None:
        """Note that a batch of a size has run."""
        if len(self._ran) >= COUNTED_MAX:
            self._ran.clear()
        self._ran[key, size] += 1

    def is_planned(self, key: Key, rows: int) -> bool:
        """Whether the next batch of `rows` is of a size whose program is kept, as far as is known.

        A program that has run once may go for the next new one; one that has run twice stays.
        """
        size = self._size(rows, self._seen[key, rows] + 1)
        return self._ran[key, size] >= KEPT_AFTER
