"""Types of a model's inputs and outputs for a call, where the model leaves dimensions unknown."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tightship.driver.client.segment import Placed, Stage
from tightship.driver.client.session import Session
from tightship.driver.client.staging import InBuffer, Input, Output, stage
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Executed, ModelPrepared
from tightship.driver.types.dimensions import Dimensions, combine, is_specified
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import NO_TIME
from tightship.public_calls import public_methods

KNOWN_MAX = 64
"""Dimensions of inputs for which those of the outputs are cached."""


@public_methods
class OpenInterface:
    """Types of a model's inputs and outputs, completed by the arguments of a call.

    Attributes:
        declared: Types as the model declares them.
    """

    def __init__(self, session: Session, declared: ModelPrepared, *, varies: bool = False) -> None:
        """Complete `declared`; `varies` says that output dimensions depend on data."""
        self._session = session
        self._varies = varies
        self.declared = declared
        self._is_open = not all(map(_is_known, (*declared.inputs, *declared.outputs)))
        self._known: dict[tuple[Dimensions, ...], ModelPrepared] = {}

    def of(
        self,
        inputs: Sequence[Input],
        outputs: Sequence[Output] | None,
        loop_timeout_ns: int = NO_TIME,
    ) -> ModelPrepared:
        """Return the types for a call; the driver determines output dimensions not seen before.

        For that it may run the model, with `loop_timeout_ns` for each loop.

        Raises:
            DriverError: Error of the driver.
            InputError: As from `stage`.
        """
        declared = self.declared
        if not self._is_open or len(inputs) != len(declared.inputs):
            return declared
        rows = tuple(map(_completed, declared.inputs, inputs))
        found = self._known.get(rows)
        if found is not None:
            return found
        found = self.with_inputs(inputs)
        if outputs is not None and not any(each is None for each in outputs):
            return found
        if not all(map(_is_known, found.outputs)):
            found = replace(
                found, outputs=_with(found.outputs, self._asked(found, inputs, loop_timeout_ns))
            )
        while len(self._known) >= KNOWN_MAX:
            del self._known[next(iter(self._known))]
        if not self._varies:
            self._known[rows] = found
        return found

    def with_inputs(self, inputs: Sequence[Input]) -> ModelPrepared:
        """Return the types for a call, with only the inputs completed."""
        if not self._is_open or len(inputs) != len(self.declared.inputs):
            return self.declared
        rows = tuple(map(_completed, self.declared.inputs, inputs))
        return replace(self.declared, inputs=_with(self.declared.inputs, rows))

    def _asked(
        self, found: ModelPrepared, inputs: Sequence[Input], loop_timeout_ns: int
    ) -> list[Dimensions]:
        """Return the dimensions of the outputs from a run with too little memory for them."""
        rows = [value.dimensions if _is_known(value) else (1,) for value in found.outputs]
        least = replace(found, outputs=_with(found.outputs, rows))
        room = Stage(self._session)
        try:
            request = stage(least, inputs, None, room.of).request
            outputs = zip(request.outputs, found.outputs, strict=True)
            unknown = [replace(place, dimensions=value.dimensions) for place, value in outputs]
            asked = replace(request, outputs=tuple(unknown))
            call = m.Execute(found.model, asked, loop_timeout_ns=loop_timeout_ns)
            shapes = self._session.expect(Executed, call).shapes
        finally:
            room.close()
        return [shape.dimensions for shape in shapes]


def _completed(value: ValueType, given: Input) -> Dimensions:
    """Return the dimensions of an input; those declared if the argument contradicts them."""
    match given:
        case Placed():
            dimensions: Dimensions = given.array.shape
        case InBuffer():
            dimensions = given.dimensions
        case _:
            dimensions = np.shape(given)
    combined = combine(value.dimensions, dimensions)
    return value.dimensions if combined is None or value.is_scalar else combined


def _with(types: Sequence[ValueType], rows: Sequence[Dimensions]) -> tuple[ValueType, ...]:
    return tuple(replace(each, dimensions=row) for each, row in zip(types, rows, strict=True))


def _is_known(value: ValueType) -> bool:
    return is_specified(value.dimensions, is_scalar=value.is_scalar)
