"""What a client has in its driver and gives back once, and memory for the arrays of its calls."""

from typing import Self

from tightship.driver.client.segment import Segment
from tightship.driver.client.session import Session
from tightship.driver.protocol import messages as m


class Released:
    """Something in the driver that is given back once."""

    def __init__(self, session: Session, release: m.Call) -> None:
        self._session = session
        self._release: m.Call | None = release

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        if self._release is not None:
            self._session.forget(self._release)
            self._release = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Stage:
    """A segment that grows to what the largest request needed."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._segment: Segment | None = None

    def of(self, size_bytes: int) -> Segment:
        """The segment, empty and large enough."""
        segment = self._segment
        if segment is None or segment.size_bytes < size_bytes:
            self.close()
            segment = self._segment = Segment(self._session, max(1, size_bytes))
        segment.reset()
        return segment

    def close(self) -> None:
        """Give it back. Harmless when repeated."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None
