"""Checks that a native kernel stays within its operands."""

from collections.abc import Sequence

from tightship._core import NativeKernel
from tightship.engine.program.program import Operand


def check_reach(kernel: NativeKernel, operands: Sequence[Operand]) -> None:
    """Refuse a kernel that would touch bytes outside one of its operands.

    Raises:
        ValueError: The kernel would; the message names the operand, its shape and the bytes.
    """
    for operand, (low, high) in zip(operands, kernel.reach(), strict=True):
        first, last = 0, operand.size_bytes
        if operand.desc is not None:
            first, last = operand.desc.offset_bytes, operand.desc.end_bytes
        if first + low < 0 or first + high > last:
            raise ValueError(
                f"`{operand.name}` of shape {list(operand.shape)} has {last} bytes, where bytes "
                f"{first + low} to {first + high} are needed"
            )
