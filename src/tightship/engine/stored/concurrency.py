"""Writes and reads what a program for several workers was chosen from, as JSON values."""

from dataclasses import astuple

from tightship.engine.stored import fields
from tightship.engine.stored.fields import MalformedError
from tightship.planner.parallel.concurrency import Concurrency, PlanChoice

OPERATIONS_MAX = 1 << 62
"""Largest number of operations accepted in a file."""


def concurrency_json(concurrency: Concurrency | None) -> list[object] | None:
    """Describe the choice; None for a program for one worker."""
    if concurrency is None:
        return None
    return [
        [list(astuple(choice)) for choice in concurrency.choices],
        concurrency.chosen,
        [list(edge) for edge in concurrency.edges],
        concurrency.operations,
        -1 if concurrency.bound_bytes is None else concurrency.bound_bytes,
    ]


def concurrency_of(value: object, workers: int, step_count: int) -> Concurrency | None:
    """Read what `concurrency_json` describes.

    Args:
        value: The description.
        workers: Workers that the program is for.
        step_count: Steps of the program.

    Raises:
        MalformedError: It is something else, or is not there for a program for several workers.
    """
    if (value is None) != (workers == 1):
        raise MalformedError("a plan for several workers does not say what it was chosen from")
    if value is None:
        return None
    rows, chosen, edges, operations, bound = fields.items(value, 5)
    choices = tuple([_choice(row) for row in fields.items(rows)])
    limit = fields.integer(bound, -1)
    return Concurrency(
        workers,
        choices,
        fields.index(chosen, len(choices)),
        tuple([_edge(row, step_count) for row in fields.items(edges)]),
        _operations(operations),
        None if limit < 0 else limit,
    )


def _choice(value: object) -> PlanChoice:
    name, *amounts = fields.items(value, 5)
    arena, added, chain = map(fields.integer, amounts[:3])
    return PlanChoice(fields.text(name), arena, added, chain, _operations(amounts[3]))


def _operations(value: object) -> int:
    return fields.integer(value, 0, OPERATIONS_MAX)


def _edge(value: object, step_count: int) -> tuple[int, int]:
    before, after = [fields.index(each, step_count) for each in fields.items(value, 2)]
    if before >= after:
        raise MalformedError(f"step {after} waits for itself or a later one")
    return before, after
