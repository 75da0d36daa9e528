"""Requests that come again with the same bytes, as those do whose tensors are in shared memory."""

from tightship.driver.oip.http.message import HttpRequest

KNOWN_BYTES_MAX = 8 << 10
"""Largest request that is known again by its bytes."""
KNOWN_MAX = 256
"""Requests that are known."""
HEAD_END = b"\r\n\r\n"


class KnownRequests:
    """Requests by all of their bytes, and the heads with which they begin."""

    def __init__(self) -> None:
        """Know none."""
        self._requests: dict[bytes, HttpRequest] = {}
        self._heads: set[bytes] = set()

    def find(self, whole: bytes) -> HttpRequest | None:
        """Return the request that consists of these bytes."""
        return self._requests.get(whole)

    def begin_with(self, head: bytes) -> bool:
        """Whether bytes are all of the head of a known request, and no more."""
        return head in self._heads

    def keep(self, whole: bytes, request: HttpRequest) -> None:
        """Know a request from now on."""
        if len(self._requests) >= KNOWN_MAX:
            self._requests.clear()
            self._heads.clear()
        self._requests[whole] = request
        self._heads.add(whole[: whole.index(HEAD_END) + len(HEAD_END)])


class RequestBytes:
    """Bytes of one request of a connection, while nothing else has come with them.

    Most clients send head and body apart. The head of a known request is kept back until more
    comes, so that it need not be parsed.

    Attributes:
        whole: Bytes of the request so far; empty if they are too many, or not its own alone.
        head: Head that is kept back; empty for none.
    """

    __slots__ = ("head", "whole")

    def __init__(self) -> None:
        """Have none."""
        self.whole = self.head = b""

    def begin(self, data: bytes) -> None:
        """Note the first bytes of a request, or of none that is known again if empty."""
        self.whole = data if len(data) <= KNOWN_BYTES_MAX else b""

    def go_on(self, data: bytes) -> None:
        """Note further bytes of the request."""
        self.begin(self.whole + data if self.whole else b"")

    def with_head(self, data: bytes) -> bytes:
        """Return bytes behind the head that was kept back, which is given up."""
        head, self.head = self.head, b""
        return head + data if head else data
