"""Programs of sessions that are kept for later processes."""

from collections.abc import Callable, Mapping, Sequence

from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.state.step_choices import StepChoices
from tightship.model.keeping import JOINT, TOKENS, Keeping

CHOICES = StepChoices(64, 1, 8)


class Keeper:
    """Keeper of the programs for some numbers of tokens."""

    def __init__(self, *kept: int) -> None:
        self.kept, self.asked = kept, list[tuple[object, str, Sequence[int]]]()

    def program(
        self, facts: Mapping[str, str], make: Callable[[], CompiledModel],
        note: Callable[[CompiledModel], object],
    ) -> CompiledModel:  # fmt: skip
        raise NotImplementedError

    def noted(self, facts: Mapping[str, str]) -> object:
        return True if self.holds(facts) else None

    def holds(self, facts: Mapping[str, str]) -> bool:
        assert facts["context"] == "64"
        return int(facts.get(TOKENS, -1)) in self.kept

    def make_apart(self, choices: object, name: str, counts: Sequence[int]) -> None:
        self.asked.append((choices, name, counts))


def test_another_process_makes_what_is_not_kept() -> None:
    keeper = Keeper(4, 1)
    keeping = Keeping(keeper, CHOICES)
    keeping.make_apart(TOKENS, [4, 1])
    assert keeper.asked == []
    keeping.make_apart(TOKENS, [8, 4, 2])
    keeping.make_apart(JOINT, [4])
    assert keeper.asked == [(CHOICES, TOKENS, [8, 2]), (CHOICES, JOINT, [4])]
    assert keeping.appends(4) is True
    assert keeping.appends(8) is None
