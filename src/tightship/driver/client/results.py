"""What a run gives back to its caller."""

from collections.abc import Sequence

from tightship.driver.client.segment import Array, Placed
from tightship.driver.client.staging import Output, Staged
from tightship.driver.protocol.replies import Executed, Reply
from tightship.driver.rules.status import ErrorStatus
from tightship.errors import DriverError

Results = tuple[Array | None, ...]


def check(reply: Reply) -> None:
    """Check that a run wrote all of its outputs.

    Raises:
        DriverError: OUTPUT_INSUFFICIENT_SIZE.
    """
    assert isinstance(reply, Executed), reply
    if reply.status is not ErrorStatus.NONE:
        shapes = ", ".join(str(list(shape.dimensions)) for shape in reply.shapes)
        raise DriverError(
            f"An output did not fit its place; the outputs have shapes {shapes}.",
            status=reply.status,
        )


def results_of(staged: Staged, outputs: Sequence[Output] | None) -> Results:
    """The outputs on this side; copies of those that the next run may write over."""
    given = [None] * len(staged.outputs) if outputs is None else outputs
    return tuple(
        array if array is None or isinstance(place, Placed) else array.copy()
        for array, place in zip(staged.outputs, given, strict=True)
    )
