"""Things in a driver that a client releases once, and memory for the arrays of its calls."""

from typing import Self

from tightship.driver.client.segment import Segment
from tightship.driver.client.session import Session
from tightship.driver.protocol import messages as m


class Released:
    """Thing in the driver that is released once."""

    def __init__(self, session: Session, release: m.Call) -> None:
        self._session = session
        self._release: m.Call | None = release

    def close(self) -> None:
        """Release it. Harmless when repeated."""
        if self._release is not None:
            self._session.forget(self._release)
            self._release = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Stage:
    """Segment that grows to the size of the largest request."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._segment: Segment | None = None

    def of(self, size_bytes: int) -> Segment:
        """Return the segment, empty and of at least `size_bytes`."""
        segment = self._segment
        if segment is None or segment.size_bytes < size_bytes:
            self.close()
            segment = self._segment = Segment(self._session, max(1, size_bytes))
        segment.reset()
        return segment

    def close(self) -> None:
        """Release the segment. Harmless when repeated."""
        if self._segment is not None:
            self._segment.close()
            self._segment = None
