"""Requests that determine the dimensions of a model's inputs."""

import math
from dataclasses import replace

from tightship.driver.models.loaded import Loaded
from tightship.driver.protocol.replies import OutputShape
from tightship.driver.service.effects import Run, RunArgument
from tightship.driver.types.dimensions import combine, is_specified
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import invalid


def fitted(found: Loaded, asked: Run) -> tuple[Loaded, Run]:
    """Return the model for a request's dimensions, and the request with those of its outputs.

    Raises:
        DriverError: As from `Loaded.at`; INVALID_ARGUMENT: the request contradicts the dimensions
            of an output.
        TightshipError: The engine refuses the model.
    """
    if not found.is_open:
        return found, asked
    known = found.at([argument.dimensions for argument in asked.inputs])
    outputs = []
    for index, (argument, value) in enumerate(zip(asked.outputs, known.outputs, strict=True)):
        dimensions = combine(argument.dimensions, value.dimensions)
        if dimensions is None:
            raise invalid(
                f"Output {index} is given dimensions {list(argument.dimensions)}; the inputs "
                f"determine {list(value.dimensions)}."
            )
        outputs.append(replace(argument, dimensions=dimensions))
    return known, replace(asked, outputs=tuple(outputs))


def shortage(found: Loaded, asked: Run) -> tuple[OutputShape, ...]:
    """Return the shapes of the outputs if the memory of one is known to be too small; else ().

    Args:
        found: Model from `fitted`.
        asked: Request from `fitted`.
    """
    if not all(is_specified(each.dimensions, is_scalar=each.is_scalar) for each in found.outputs):
        return ()
    shapes = tuple(
        OutputShape(value.dimensions, _fits(argument, value))
        for argument, value in zip(asked.outputs, found.outputs, strict=True)
    )
    return () if all(shape.is_sufficient for shape in shapes) else shapes


def _fits(argument: RunArgument, value: ValueType) -> bool:
    size_bytes = dtype_of(value).itemsize * math.prod(value.dimensions)
    if argument.token:
        return size_bytes <= argument.room_bytes
    if argument.pool is not None and argument.pool.image is not None:
        return size_bytes == argument.pool.extent.content_bytes
    return argument.location is None or size_bytes <= argument.location.length_bytes
