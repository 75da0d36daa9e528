"""Counts the pages of caches against the cap of their giver."""

import weakref
from typing import Protocol


class PageGiver(Protocol):
    """Gives pages of memory up to a cap."""

    def take(self, count: int, taker: "PageCount") -> None:
        """Count pages as taken.

        Raises:
            CapacityError: The cap does not hold them.
        """

    def give(self, count: int) -> None:
        """Count pages as free again."""


class PageCount:
    """Pages that one holder has of a giver; they are given back once the holder is gone.

    Attributes:
        count: Pages that the holder has.
    """

    __slots__ = ("__weakref__", "_giver", "count")

    def __init__(self, giver: PageGiver | None, holder: object) -> None:
        """Count none yet.

        Args:
            giver: Gives the pages; None if they are not counted.
            holder: Object whose pages these are.
        """
        self._giver, self.count = giver, 0
        weakref.finalize(holder, self.give_all)

    def take(self, count: int) -> None:
        """Take further pages.

        Raises:
            CapacityError: The giver's cap does not hold them.
        """
        if self._giver is not None and count:
            self._giver.take(count, self)
        self.count += count

    def give(self, count: int) -> None:
        """Give pages back."""
        self.count -= count
        if self._giver is not None and count:
            self._giver.give(count)

    def move(self, count: int, other: "PageCount") -> None:
        """Leave pages to another holder of the same giver."""
        self.count -= count
        other.count += count

    def give_all(self) -> None:
        """Give all pages back."""
        self.give(self.count)
