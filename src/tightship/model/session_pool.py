"""Pages of sessions' caches under one cap."""

from typing import Literal, get_args

from tightship.engine.state.cache_runs import PAGE
from tightship.engine.state.page_pool import PagePool
from tightship.errors import InputError
from tightship.public_calls import public_methods
from tightship.quantity import format_bytes, parse_bytes

AtCap = Literal["refuse", "evict"]


@public_methods
class SessionPool:
    """Memory for the caches of sessions, of one model or several, up to a cap.

    Sessions take pages as their tokens come, and give them back as these are forgotten. A page is
    zero before another session gets it. Threads may use one pool at the same time.
    """

    def __init__(self, max_bytes: int | str, *, at_cap: AtCap = "refuse") -> None:
        """Make a pool without pages.

        Args:
            max_bytes: The cap, in bytes or as a text such as `1GiB`.
            at_cap: What happens if a step needs more pages than are free: `"refuse"` raises a
                CapacityError; `"evict"` takes the pages of the session that was idle longest, which
                computes its tokens again at its next step.

        Raises:
            InputError: The cap is less than a page, or `at_cap` is unknown.
        """
        if at_cap not in get_args(AtCap):
            raise InputError(f'`at_cap` is {at_cap!r}; it must be "refuse" or "evict".')
        self._evicts = at_cap == "evict"
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

    def __repr__(self) -> str:
        used, cap = format_bytes(self.used_bytes), format_bytes(self.max_bytes)
        return f"<tightship.SessionPool: {used} of {cap}>"
