"""Keeps the programs of sessions of one set of choices for later processes."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.shape_specializer import ProgramKeeper
from tightship.engine.state.decoder import Decoder
from tightship.engine.state.step_choices import StepChoices
from tightship.model.step_arrays import cache_slots

TOKENS, JOINT = "tokens", "joint"
"""Names of the number of tokens, or of sessions, of a program that is kept."""


class Keeping(NamedTuple):
    """Programs that are kept for later processes, of one set.

    Attributes:
        keeper: Programs of the model.
        choices: Choices of the set.
    """

    keeper: ProgramKeeper
    choices: StepChoices

    def program(
        self, name: str, count: int, make: Callable[[], CompiledModel], decoder: Decoder
    ) -> CompiledModel:
        """Return a program of so many tokens or sessions, as `name` says.

        Of one for tokens it is noted whether it appends to all caches.
        """

        def note(compiled: CompiledModel) -> object:
            if name != TOKENS:
                return None
            return cache_slots(compiled.placement.lowered, decoder)[2]

        return self.keeper.program(self._facts(name, count), make, note)

    def appends(self, steps: int) -> bool | None:
        """Return whether the program for a number of tokens appends; None if it is not kept."""
        found = self.keeper.noted(self._facts(TOKENS, steps))
        return found if isinstance(found, bool) else None

    def make_apart(self, name: str, counts: Iterable[int]) -> None:
        """Have another process make those that are not kept, so that this one needs not."""
        missing = [each for each in counts if not self.keeper.holds(self._facts(name, each))]
        if missing:
            self.keeper.make_apart(self.choices, name, missing)

    def _facts(self, name: str, count: int) -> dict[str, str]:
        facts = {"context": str(self.choices.context), "session": repr(self.choices)}
        return {**facts, name: str(count)}
