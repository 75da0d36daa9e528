"""Results of a run."""

from collections.abc import Iterable, Sequence
from typing import Self

from tightship.driver.client.segment import Array, Placed
from tightship.driver.client.staging import Output, Staged
from tightship.driver.protocol.replies import UNTIMED, Executed, Reply, Timing
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError


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
