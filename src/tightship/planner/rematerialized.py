"""Makes a schedule in which some steps run a second time, just before their results are needed."""

from collections.abc import Collection, Iterator

from tightship.planner.replayed import replayed
from tightship.planner.schedule import BINDING, Schedule, Step


def rematerialized(
    schedule: Schedule, turn: int, again: Collection[int]
) -> tuple[Schedule, tuple[int, ...]]:
    """Insert clones of the steps `again` after the step `turn`.

    A step after the turn that reads an output of a cloned step reads the clone's output instead;
    the clone runs right before the first such reader. Steps that overwrite bytes for good run after
    the clones have read these bytes.

    Args:
        schedule: Values and steps.
        turn: Index of the last step before clones may run; -1 for none.
        again: Indices of steps up to the turn to run a second time.

    Returns:
        The schedule, and for each of its steps the index of the original step.
    """
    return replayed(schedule, list(_runs(schedule, turn, frozenset(again))), turn)


def _runs(schedule: Schedule, turn: int, again: frozenset[int]) -> Iterator[int]:
    """Yield steps in order, with the steps that run again before those that need them."""
    early = {v: i for i, step in enumerate(schedule.steps[: turn + 1]) for v in step.writes}
    made: set[int] = set()
    for index, step in enumerate(schedule.steps):
        if index > turn:
            for need in _needs(schedule, step, early, again, made):
                made.update(schedule.steps[need].writes)
                yield need
        yield index


def _needs(
    schedule: Schedule,
    step: Step,
    early: dict[int, int],
    again: frozenset[int],
    made: set[int],
) -> list[int]:
    """Return steps that must run again before a step, in order, without those that have."""
    found: set[int] = set()
    open_values = list(step.reads)
    while open_values:
        value = open_values.pop()
        index = early.get(value)
        if index in again and index not in found and value not in made:
            assert index is not None
            found.add(index)
            open_values.extend(schedule.steps[index].reads)

    def is_changed(index: int) -> bool:
        """Whether a step computes new bytes, or is a view of recomputed ones."""
        sources = {a.input for a in schedule.steps[index].aliases if a.kind in BINDING}
        return not sources or any(
            source in made or (early.get(source) in found and is_changed(early[source]))
            for source in sources
        )

    return [index for index in sorted(found) if is_changed(index)]
