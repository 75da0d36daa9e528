"""Defines the data that views of a decoder's sessions draw: plans by context."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class PlannedContext:
    """A context in tokens, its bytes that do not grow with sessions, by part, and a session's."""

    context: int
    parts: Mapping[str, int]
    state_bytes: int

    def peak_bytes(self, sessions: int) -> int:
        """Return the bytes with a number of sessions whose contexts are full."""
        return sum(self.parts.values()) + sessions * self.state_bytes


@dataclass(frozen=True, slots=True)
class SessionPicture:
    """Plans of a decoder's sessions.

    Attributes:
        title: Name of the model.
        contexts: At least one plan, by increasing context; all have the same parts.
        sessions: Numbers of sessions, increasing.
        asked: Contexts among them whose peaks were asked for.
        limit_bytes: Limit of memory, if there is one.
        largest: Largest context within the limit by number of sessions; 0 if none fits.
    """

    title: str
    contexts: tuple[PlannedContext, ...]
    sessions: tuple[int, ...]
    asked: frozenset[int]
    limit_bytes: int | None = None
    largest: Mapping[int, int] = field(default_factory=dict)

    def points(self, sessions: int) -> list[tuple[int, int]]:
        """Return the line of a number of sessions as (tokens, bytes), without tokens first.

        It goes to the last context that was asked for, or on to its largest one. Before the first
        context, a program takes at most what it takes there.
        """
        first = self.contexts[0]
        last = max(first.context, *self.asked, self.largest.get(sessions, 0))
        planned = [each for each in self.contexts if each.context <= last]
        peaks = [(each.context, each.peak_bytes(sessions)) for each in planned]
        return [(0, first.peak_bytes(0)), *peaks]
