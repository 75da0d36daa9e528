"""Keeps one of constants that two steps read under different names, such as a tied embedding."""

from tightship.engine.lower.steps.relocated_work import relocated_work
from tightship.engine.program.program import Lowered, LoweredStep, Operand, PackedWeight, Space
from tightship.graph import Mapped
from tightship.graph.row_by_row import RowByRow
from tightship.graph.symbolic import constant_key


def share_equal_weights(lowered: Lowered) -> Lowered:
    """Remove constants that are the same bytes of a file as one before, in the file's layout."""
    first: dict[object, int] = {}
    places: list[int] = []
    kept: list[PackedWeight] = []
    for weight in lowered.weights:
        key: object = len(kept), "apart"
        if isinstance(weight.constant, (Mapped, RowByRow)) and weight.desc is None:
            key = constant_key(weight.constant)
        place = first.setdefault(key, len(kept))
        if place == len(kept):
            kept.append(weight)
        places.append(place)
    if len(kept) == len(places):
        return lowered

    def move(operand: Operand) -> Operand:
        if operand.space is not Space.WEIGHTS or places[operand.slot] == operand.slot:
            return operand
        return operand._replace(slot=places[operand.slot])

    def step_of(step: LoweredStep) -> LoweredStep:
        reads = tuple(map(move, step.reads))
        return step._replace(reads=reads, work=relocated_work(step.work, move))

    outputs = {name: move(operand) for name, operand in lowered.outputs.items()}
    return lowered._replace(
        weights=tuple(kept), steps=tuple(map(step_of, lowered.steps)), outputs=outputs
    )
