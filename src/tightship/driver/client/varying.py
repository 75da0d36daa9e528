"""Memory for outputs whose dimensions depend on data."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from tightship.driver.client.segment import Array, Segment
from tightship.driver.client.staging import Input, Output, Results, Staged, stage
from tightship.driver.protocol.replies import Executed, ModelPrepared, OutputShape
from tightship.driver.types.dimensions import is_specified
from tightship.driver.types.operand_type import ValueType

ATTEMPTS = 3
"""Most runs for one call; the second suffices unless an input changes meanwhile."""


class VaryingOutputs:
    """Memory for each output, as large as needed so far."""

    def __init__(self, outputs: Sequence[ValueType]) -> None:
        self._declared = tuple(outputs)
        self._counts = [1] * len(outputs)

    def stage(
        self,
        model: ModelPrepared,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None,
        segment_of: Callable[[int], Segment],
    ) -> Staged:
        """Convert arguments like `stage`; unknown dimensions stay unknown in the request."""
        rooms = [
            value if _is_known(value) else replace(value, dimensions=(count,))
            for value, count in zip(self._declared, self._counts, strict=True)
        ]
        staged = stage(replace(model, outputs=tuple(rooms)), inputs, outputs, segment_of)
        given = [None] * len(rooms) if outputs is None else outputs
        rows = zip(staged.request.outputs, self._declared, given, strict=True)
        asked = [
            replace(argument, dimensions=value.dimensions) if place is None else argument
            for argument, value, place in rows
        ]
        return replace(staged, request=replace(staged.request, outputs=tuple(asked)))

    def grow(self, shapes: Sequence[OutputShape]) -> None:
        """Provide for outputs of these shapes."""
        needed = [math.prod(shape.dimensions) for shape in shapes]
        self._counts = [max(pair) for pair in zip(self._counts, needed, strict=True)]

    def results_of(
        self, staged: Staged, outputs: Sequence[Output] | None, reply: Executed
    ) -> Results:
        """Return the results, with copies of outputs that the next run may overwrite."""
        given = [None] * len(staged.outputs) if outputs is None else outputs
        rows = zip(staged.outputs, given, reply.shapes, strict=True)
        return Results(
            [
                array if array is None or place is not None else _front(array, shape)
                for array, place, shape in rows
            ],
            reply.timing,
        )


def has_open_outputs(model: ModelPrepared) -> bool:
    """Whether the model leaves dimensions of an output unknown."""
    return not all(map(_is_known, model.outputs))


def _front(room: Array, shape: OutputShape) -> Array:
    count = math.prod(shape.dimensions)
    return room.reshape(-1)[:count].reshape(shape.dimensions).copy()


def _is_known(value: ValueType) -> bool:
    return is_specified(value.dimensions, is_scalar=value.is_scalar)
