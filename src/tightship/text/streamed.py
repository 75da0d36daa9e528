"""Pieces of an answer as text: whole characters, up to the first of some stop texts."""

from codecs import getincrementaldecoder
from collections.abc import Sequence

from tightship.errors import InputError

STOPS_MAX = 16


class TextStream:
    """Text that comes in bytes of tokens, and leaves in pieces.

    A piece never ends within a character, and holds back what may begin a stop text.

    Attributes:
        is_stopped: Whether a stop text came; nothing leaves any more.
    """

    def __init__(self, stops: Sequence[str] = ()) -> None:
        """Begin.

        Args:
            stops: Texts that end the answer, which they are not part of.

        Raises:
            InputError: There are too many, or one is empty.
        """
        if len(stops) > STOPS_MAX or "" in stops:
            raise InputError(
                f"There are {len(stops)} stop texts; give at most {STOPS_MAX}, none of them empty."
            )
        self._stops = tuple(stops)
        self._decoder = getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self.is_stopped = False

    def add(self, raw: bytes) -> str:
        """Add bytes; return the text that is certain now."""
        return self._passed(self._decoder.decode(raw))

    def end(self) -> str:
        """Return the rest, at the end of the answer."""
        rest = self._passed(self._decoder.decode(b"", final=True))
        held, self._held = self._held, ""
        return rest if self.is_stopped else rest + held

    def _passed(self, text: str) -> str:
        if self.is_stopped:
            return ""
        if not self._stops:
            return text
        whole = self._held + text
        places = [place for stop in self._stops if (place := whole.find(stop)) >= 0]
        if places:
            self.is_stopped, self._held = True, ""
            return whole[: min(places)]
        kept = len(whole) - max(_begun(whole, stop) for stop in self._stops)
        self._held = whole[kept:]
        return whole[:kept]


def _begun(text: str, stop: str) -> int:
    """Return the letters at the end of a text with which a stop text begins."""
    most = min(len(text), len(stop) - 1)
    return next((n for n in range(most, 0, -1) if text.endswith(stop[:n])), 0)
