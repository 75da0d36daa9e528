"""Plans sessions of a prepared model from the programs that it has for them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike

from tightship.engine.activations import usual_cache
from tightship.engine.plan.footprint import further_bytes, program_bytes, session_bytes
from tightship.engine.state.cache_types import CacheType, check_cache_type, chosen_type
from tightship.engine.state.decoder import Declared
from tightship.engine.stored.sessions import StoredSessions
from tightship.errors import InputError
from tightship.graph import Graph
from tightship.loading.input_shapes import Given
from tightship.loading.planned_session import SessionPlan, batch_of
from tightship.loading.restoring import Asked, open_prepared


@dataclass(slots=True)
class StoredSessionPlanner:
    """Planner of the sessions of a prepared model; nothing is lowered.

    Attributes:
        sessions: Programs of the file.
        name: Name of the model.
        batch: Texts that a session goes on with at once.
        cache: Type that caches are rounded to; None for the model's.
    """

    sessions: StoredSessions
    name: str
    batch: int
    cache: CacheType | None = None
    _plans: dict[int, SessionPlan] = field(default_factory=dict)

    @property
    def contexts(self) -> dict[int, int]:
        """Places of the programs by contexts, from the shortest."""
        every = enumerate(self.sessions.choices)
        found = {each.context: place for place, each in every if each.last and
                 (each.batch, each.cache) == (self.batch, self.cache)}  # fmt: skip
        return dict(sorted(found.items()))

    @property
    def least_context(self) -> int:
        """Shortest context that can be planned.

        Raises:
            InputError: There is none.
        """
        return next(iter(self._known()))

    def _known(self) -> dict[int, int]:
        found = self.contexts
        if not found:
            raise InputError(
                f"`{self.sessions.model.path}` has no programs for sessions"
                f"{f' with caches of {self.cache}' if self.cache else ''}; prepare it with them, "
                "by `--context`, or plan the ONNX file that it was made of."
            )
        return found

    def plan(self, context: int) -> SessionPlan:
        """Plan sessions of a context that the file has programs for.

        Raises:
            FormatError: The file is damaged.
            InputError: It has none for the context.
        """
        known = self._known()
        if context not in known:
            raise InputError(
                f"`{self.sessions.model.path}` has no programs for sessions of {context} tokens, "
                f"only of {', '.join(map(str, known))}; plan the ONNX file that it was made of."
            )
        if context not in self._plans:
            self._plans[context] = self._planned(known[context])
        return self._plans[context]

    def _planned(self, place: int) -> SessionPlan:
        choices, steps = self.sessions.choices[place], self.sessions.at(place)
        decoder = choices.decoder(_unread, steps.declared)
        own, arenas = self.sessions.model.plan(), steps.model.arenas()
        ends = [steps.compiled(count, decoder) for count in {choices.chunk: 0, 1: 0}]
        given = decoder.given_bytes
        lowered = [each.placement.lowered for each in ends]
        largest, further = (
            max(count(each, is_stored=True) for each in lowered)
            for count in (program_bytes, further_bytes)
        )
        return SessionPlan(
            choices.context,
            steps.model.weights_bytes,
            own.arena_bytes + max(arenas),
            own.io_bytes
            + max(each.placement.io_bytes for each in ends)
            - 2 * decoder.state_bytes
            - given,
            own.runtime_bytes + session_bytes(largest, further, choices.chunk.bit_length()),
            decoder.state_bytes + given,
            decoder.bytes_per_token,
        )

    def largest_context(self, limit_bytes: int, sessions: int) -> int:
        """Return the largest context with which so many sessions fit a limit; 0 if none does."""
        fitting = [each for each in self._known()
                   if self.plan(each).peak_bytes(sessions) <= limit_bytes]  # fmt: skip
        return max(fitting, default=0)


def _unread(_shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    raise AssertionError("stored programs are planned without a graph")


def stored_planner(
    path: str | PathLike[str], asked: Asked, given: Given, cache: CacheType | None = None
) -> StoredSessionPlanner:
    """Return the planner of a prepared model.

    Args:
        path: Path of the file.
        asked: Requirements on the preparation.
        given: Lengths by dimension; the batch's may be among them.
        cache: Type that caches are rounded to; None for the usual one.

    Raises:
        FormatError: The file is damaged, or was made for another environment.
        InputError: It has no programs for sessions, or a length is not the batch's.
    """
    check_cache_type(cache)
    sessions = StoredSessions.of(open_prepared(path, asked))
    batch = sessions.choices[0].batch if sessions.choices else 1
    declared = sessions.at(0).declared if sessions.choices else Declared({}, {}, {})
    if given:
        batch = batch_of(declared.inputs, given)
    usual = usual_cache(sessions.model.compatibility.without)
    kind = chosen_type(cache, usual, declared.types.values())
    return StoredSessionPlanner(sessions, sessions.model.name, batch, kind)
