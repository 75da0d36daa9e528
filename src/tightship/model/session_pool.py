"""Pages of sessions' caches under one cap."""

from os import PathLike
from typing import TYPE_CHECKING, Literal, get_args

from tightship.engine.state.cache_runs import PAGE
from tightship.engine.state.page_pool import PagePool
from tightship.errors import CapacityError, InputError
from tightship.public_calls import public_methods
from tightship.quantity import format_bytes, parse_bytes

if TYPE_CHECKING:
    from tightship.engine.state.cache_rows import CacheRows
    from tightship.model.spilled_rows import SpilledRows, SpillSpace

AtCap = Literal["refuse", "evict", "spill"]
AtSpillCap = Literal["refuse", "evict"]


@public_methods
class SessionPool:
    """Memory for the caches of sessions, of one model or several, up to a cap.

    Sessions take pages as their tokens come, and give them back as these are forgotten. A page is
    zero before another session gets it. Threads may use one pool at the same time.
    """

    def __init__(
        self,
        max_bytes: int | str,
        *,
        at_cap: AtCap = "refuse",
        spill_bytes: int | str | None = None,
        spill_folder: str | PathLike[str] | None = None,
        at_spill_cap: AtSpillCap = "refuse",
    ) -> None:
        """Make a pool without pages.

        Args:
            max_bytes: The cap, in bytes or as a text such as `1GiB`.
            at_cap: What happens if a step needs more pages than are free: `"refuse"` raises a
                CapacityError; `"evict"` takes the pages of the session that was idle longest, which
                computes its tokens again at its next step; `"spill"` takes them likewise, and
                writes the rows to a file first, which that step reads.
            spill_bytes: Most bytes of the files of `"spill"`; needed for it.
            spill_folder: Where these are, each without a name; the system's folder for temporary
                files if it is left out.
            at_spill_cap: What happens if these bytes, or the disk, do not hold the rows of a
                session: `"refuse"` raises a CapacityError in the step that needs its pages;
                `"evict"` takes them as `at_cap="evict"` does.

        Raises:
            InputError: The cap is less than a page, `at_cap` or `at_spill_cap` is unknown, an
                argument of `"spill"` is missing or not for it, or no file can be made in the
                folder.
        """
        if at_cap not in get_args(AtCap):
            raise InputError(f'`at_cap` is {at_cap!r}; it must be "refuse", "evict" or "spill".')
        if at_spill_cap not in get_args(AtSpillCap):
            raise InputError(f'`at_spill_cap` is {at_spill_cap!r}; it must be "refuse" or "evict".')
        if (at_cap == "spill") is (spill_bytes is None) or (
            spill_bytes is None and (spill_folder is not None or at_spill_cap != "refuse")
        ):
            raise InputError(
                f'`at_cap` is {at_cap!r} and `spill_bytes` {spill_bytes!r}; `at_cap="spill"` needs '
                "the most bytes of its files, and `spill_bytes`, `spill_folder` and "
                "`at_spill_cap` are for it only."
            )
        self._evicts, self._evicts_unspilled = at_cap != "refuse", at_spill_cap == "evict"
        self._space = None if spill_bytes is None else _space(spill_bytes, spill_folder)
        self._pages = PagePool(
            parse_bytes(max_bytes, "max_bytes", PAGE) // PAGE, evicts=self._evicts
        )

    @property
    def max_bytes(self) -> int:
        """The cap, in whole pages."""
        return self._pages.cap * PAGE

    @property
    def used_bytes(self) -> int:
        """Bytes of the pages that sessions have; a page that several share counts once."""
        return self._pages.used * PAGE

    @property
    def evictions(self) -> int:
        """Times that a session lost its pages."""
        return self._pages.evictions

    @property
    def spilled_bytes(self) -> int:
        """Bytes of files with the rows of sessions that have no pages."""
        return 0 if self._space is None else self._space.used_bytes

    def _spill(self, rows: "CacheRows", length: int) -> "SpilledRows | None":
        """Write the first rows of a session to a file; None if they are to be lost.

        Raises:
            CapacityError: They are not to be lost, and no file holds them.
        """
        if self._space is None:
            return None
        try:
            return self._space.spill(rows, length)
        except CapacityError:
            if self._evicts_unspilled:
                return None
            raise

    def __repr__(self) -> str:
        used, cap = format_bytes(self.used_bytes), format_bytes(self.max_bytes)
        return f"<tightship.SessionPool: {used} of {cap}>"


def _space(size_bytes: int | str, folder: str | PathLike[str] | None) -> "SpillSpace":
    from tightship.model.spilled_rows import SpillSpace  # few pools spill

    return SpillSpace.of(parse_bytes(size_bytes, "spill_bytes", PAGE), folder)
