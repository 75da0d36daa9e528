"""Connection's use of the fast path: which requests recur, and when the native core takes over."""

import asyncio
from collections.abc import Callable
from functools import partial

from tightship.driver.oip.caller import Caller
from tightship.driver.oip.http.calls import Asked, HttpCalls, Inference
from tightship.driver.oip.http.lending import REQUEST_BYTES_MAX, Lending
from tightship.driver.oip.http.message import HttpRequest

PATIENCE_MAX = 64
"""Most known requests in a row before lending again a connection that was lent in vain."""


class Loan:
    """Requests that arrived alone on a connection, and its loan to the native core.

    Bytes arrive alone if no request or reply is under way.
    """

    def __init__(
        self,
        calls: HttpCalls,
        lending: Lending,
        caller: Caller,
        came_back: Callable[[bytes], None],
    ) -> None:
        """Prepare to lend the connection of a caller.

        `came_back` gets the bytes of a response still to be sent, and resumes reading.
        """
        self._calls, self._lending, self._came_back = calls, lending, came_back
        self._caller = caller
        self._number = self._known_count = 0
        self._patience = 1
        self._fresh, self._asked = b"", list[Asked]()

    @property
    def is_out(self) -> bool:
        """Whether the native core has the connection."""
        return bool(self._number)

    def known(self, data: bytes) -> Inference | None:
        """Return the known inference of these bytes, if they arrived alone; empty ones did not."""
        self._fresh = data if len(data) <= REQUEST_BYTES_MAX else b""
        found = self._calls.known(self._fresh)
        self._asked = [] if found is None else [found]
        return found

    def note(self, request: HttpRequest) -> None:
        """Note the request at the end of the latest bytes."""
        if self._fresh:  # others cannot be repeated, and their bodies may be large
            self._asked.append(request)

    def settle(self, transport: asyncio.Transport, *, is_granted: bool) -> None:
        """Remember a successful request after its reply; lend the connection if it was known.

        Known bytes skip the checks of `AllowedOrigins`, hence only granted requests are remembered.
        """
        if not self._fresh or len(self._asked) != 1:
            return
        fresh, self._fresh = self._fresh, b""
        asked = self._asked.pop()
        if isinstance(asked, HttpRequest):
            self._known_count = 0
            if is_granted:
                self._calls.remember(fresh, asked)
            return
        self._known_count += 1
        if self._known_count < self._patience or transport.get_write_buffer_size():
            return
        if self._is_known(fresh, asked):
            self._lend(transport)

    def _is_known(self, data: bytes, asked: Inference) -> bool:
        """Whether the core knows the request, after passing it on if it is new.

        What the request is bound to is referenced only here: once the connection is lent, its
        client may get a reply and unregister a region.
        """
        if not self._lending.knows(data) and (found := self._calls.cached(asked)):
            cached, response = found
            is_current = partial(self._calls.is_current, asked, cached)
            self._lending.keep(data, response, cached, is_current)
        return self._lending.knows(data)

    def _lend(self, transport: asyncio.Transport) -> None:
        file = transport.get_extra_info("socket").fileno()
        try:
            caller = self._caller
            self._number = self._lending.lend(file, self._take_back, caller.account, caller.client)
        except RuntimeError:
            self._patience = PATIENCE_MAX
        else:
            transport.pause_reading()

    def _take_back(self, is_known: bool, unsent: bytes) -> None:  # noqa: FBT001
        self._number = self._known_count = 0
        if not is_known:
            self._patience = min(2 * self._patience, PATIENCE_MAX)
        self._came_back(unsent)

    def recall(self) -> bool:
        """End the loan; False during a request, after which the connection comes back by itself."""
        if self._number and self._lending.recall(self._number):
            self._number = 0
        return not self._number

    def end(self) -> None:
        """Recall a lost connection, and drop its callback, which refers to its owner."""
        self.recall()
        self._came_back = _ignore
        self._fresh = b""
        self._asked.clear()

    def idle_since_ns(self) -> int | None:
        """Return the time of the last reply, by `monotonic_ns`; None during a request."""
        return self._lending.idle_since_ns(self._number)


def _ignore(unsent: bytes) -> None:
    """Ignore the return of a lost connection."""
