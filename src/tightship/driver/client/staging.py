"""Arguments and results of calls: arrays in segments, buffers in the driver."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from tightship.driver.client.segment import Array, Placed, Segment, aligned
from tightship.driver.protocol.replies import UNTIMED, Executed, ModelPrepared, Reply, Timing
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.elements import dtype_of
from tightship.driver.types.model import DataLocation
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.request import Request, RequestArgument, RequestPool
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError


@dataclass(frozen=True, slots=True)
class InBuffer:
    """Buffer in the driver, or image of the client, as an argument.

    Attributes:
        token: Token of the buffer, or identifier of an image's pool.
        dimensions: Dimensions that the model leaves unknown.
    """

    token: int
    dimensions: Dimensions = ()
    is_token: bool = True


Input = ArrayLike | Placed | InBuffer
"""Value that a run reads: an array, one in a segment, or bytes of a driver buffer."""
Output = Placed | InBuffer | None
"""Place that a run writes to: a segment, a driver buffer, or (None) an array of its own."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Request, and its values on this side.

    Attributes:
        inputs, outputs: Arrays; None for a buffer.
    """

    request: Request
    inputs: tuple[Array | None, ...]
    outputs: tuple[Array | None, ...]


def stage(
    model: ModelPrepared,
    inputs: Sequence[Input],
    outputs: Sequence[Output] | None,
    segment_of: Callable[[int], Segment],
) -> Staged:
    """Convert arguments to a request.

    Args:
        model: Types of inputs and outputs.
        inputs: Argument for each input, in order.
        outputs: Argument for each output, or None; None places it in the segment.
        segment_of: Returns a segment of at least this size; called if one is needed.

    Raises:
        InputError: The number, a dtype or a shape does not fit.
    """
    wanted = [None] * len(model.outputs) if outputs is None else list(outputs)
    _check_count("inputs", len(inputs), len(model.inputs))
    _check_count("outputs", len(wanted), len(model.outputs))
    given = [
        each if isinstance(each, (Placed, InBuffer)) else _array(each, value, index)
        for index, (each, value) in enumerate(zip(inputs, model.inputs, strict=True))
    ]
    sizes = [aligned(each.nbytes) for each in given if isinstance(each, np.ndarray)]
    results = zip(wanted, model.outputs, strict=True)
    sizes += [aligned(value.size_bytes) for each, value in results if each is None]
    segment = segment_of(sum(sizes)) if sizes else None
    sources: list[Placed | InBuffer] = []
    for each in given:
        if isinstance(each, np.ndarray):
            assert segment is not None
            placed = segment.place(each.shape, each.dtype)
            placed.array[...] = each
            sources.append(placed)
        else:
            sources.append(each)
    targets: list[Placed | InBuffer] = []
    for goal, value in zip(wanted, model.outputs, strict=True):
        if goal is None:
            assert segment is not None
            targets.append(segment.place(value.dimensions, dtype_of(value)))
        else:
            targets.append(goal)
    return _staged(sources, targets)


def _staged(sources: list[Placed | InBuffer], targets: list[Placed | InBuffer]) -> Staged:
    pools: list[RequestPool] = []

    def argument(each: Placed | InBuffer) -> RequestArgument:
        is_token = isinstance(each, InBuffer) and each.is_token
        pool = RequestPool(each.token if isinstance(each, InBuffer) else each.pool, is_token)
        if pool not in pools:
            pools.append(pool)
        if isinstance(each, InBuffer):
            return RequestArgument(DataLocation(pools.index(pool)), each.dimensions)
        location = replace(each.location, pool_index=pools.index(pool))
        return RequestArgument(location, each.array.shape)

    rows = [tuple(map(argument, row)) for row in (sources, targets)]
    arrays = [
        tuple(each.array if isinstance(each, Placed) else None for each in row)
        for row in (sources, targets)
    ]
    return Staged(Request(rows[0], rows[1], tuple(pools)), arrays[0], arrays[1])


def fill(places: Sequence[Array | None], model: ModelPrepared, inputs: Sequence[ArrayLike]) -> None:
    """Copy arrays to the places of an earlier request's.

    Raises:
        InputError: As from `stage`; nothing is copied.
    """
    _check_count("inputs", len(inputs), len(model.inputs))
    arrays = [
        _array(each, value, index)
        for index, (each, value) in enumerate(zip(inputs, model.inputs, strict=True))
    ]
    for place, array in zip(places, arrays, strict=True):
        assert place is not None
        place[...] = array


def _array(given: ArrayLike, value: ValueType, index: int) -> Array:
    array = np.asarray(given)
    wanted = dtype_of(value)
    if array.dtype != wanted or array.shape != value.dimensions:
        raise InputError(
            f"Input {index} has dtype {array.dtype} and shape {list(array.shape)}; the model takes "
            f"{wanted} and {list(value.dimensions)}."
        )
    return array


def _check_count(what: str, given: int, wanted: int) -> None:
    if given != wanted:
        raise InputError(f"{given} {what} are given; the model has {wanted}.")


class Results(tuple[Array | None, ...]):
    """Array of each output; None for an output in a buffer.

    Attributes:
        timing: Durations in nanoseconds: `on_device_ns` in the model, `in_driver_ns` in the driver
            altogether. Both are -1 unless requested.
    """

    timing: Timing

    def __new__(cls, arrays: Iterable[Array | None], timing: Timing = UNTIMED) -> Self:
        """Create results from arrays in the order of the outputs."""
        made = super().__new__(cls, arrays)
        made.timing = timing
        return made


def check(reply: Reply) -> Timing:
    """Check that a run wrote all of its outputs, and return its timing.

    Raises:
        DriverError: OUTPUT_INSUFFICIENT_SIZE.
    """
    assert isinstance(reply, Executed), reply
    if reply.status is not ErrorStatus.NONE:
        shapes = ", ".join(str(list(shape.dimensions)) for shape in reply.shapes)
        raise DriverError(
            f"The memory for an output is too small; the outputs have shapes {shapes}.",
            status=reply.status,
        )
    return reply.timing


def results_of(
    staged: Staged, outputs: Sequence[Output] | None, timing: Timing = UNTIMED
) -> Results:
    """Return the results, with copies of outputs that the next run may overwrite."""
    given = [None] * len(staged.outputs) if outputs is None else outputs
    arrays = zip(staged.outputs, given, strict=True)
    return Results(
        [
            array if array is None or isinstance(place, Placed) else array.copy()
            for array, place in arrays
        ],
        timing,
    )
