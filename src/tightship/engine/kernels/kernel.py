"""What the executor calls: one operator made ready for fixed shapes and dtypes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from tightship.engine.kernels.kernel_context import KernelContext

Array = NDArray[Any]
Operands = Sequence[Any]
"""Arrays at the places of a node's inputs or outputs; None at those it leaves out."""

Run = Callable[[Sequence[Array | None], Sequence[Array | None], Array | None], None]
"""`run(inputs, outputs, scratch)`, positional as the node's inputs and outputs."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """An operator that writes into arrays it is given and allocates none that grow.

    `run` fills every output completely. Inputs and outputs are C-contiguous arrays of the
    node's dtypes and shapes, None where the node leaves them out; `scratch` is a uint8 array
    of `scratch_bytes` at a 64-byte boundary, None where `scratch_bytes` is 0.

    Attributes:
        in_place: Pairs (output index, input index) that may be one and the same buffer.
        context: What it was made for, with those constants alone that it had to know.
    """

    name: str
    run: Run
    scratch_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    context: "KernelContext | None" = None
