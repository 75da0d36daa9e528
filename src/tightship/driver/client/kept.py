"""Memory for the arrays of a client's calls."""

from tightship.driver.client.segment import Segment
from tightship.driver.client.session import Session


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
