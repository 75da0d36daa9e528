"""Kernels as the executor calls them: one operator ready for fixed shapes and dtypes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from tightship.engine.kernels.kernel_context import KernelContext

Array = NDArray[Any]
Operands = Sequence[Any]
"""Arrays of a node's inputs or outputs in order; None for those left out."""

Run = Callable[[Sequence[Array | None], Sequence[Array | None], Array | None], None]
"""Function `run(inputs, outputs, scratch)`, with operands in the node's order."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Operator that writes into given arrays and allocates nothing that grows with them.

    `run` fills every output completely. Inputs and outputs are C-contiguous arrays of the node's
    dtypes and shapes, None if left out; `scratch` is a uint8 array of `scratch_bytes` at a 64-byte
    boundary, None if `scratch_bytes` is 0.

    Attributes:
        in_place: Pairs (output index, input index) that may be one buffer.
        context: Context that it was made for, with only those constants that it depends on.
    """

    name: str
    run: Run
    scratch_bytes: int = 0
    in_place: tuple[tuple[int, int], ...] = ()
    context: "KernelContext | None" = None
