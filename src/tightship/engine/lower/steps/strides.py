"""Strides of operands in bytes, for native kernels."""

from collections.abc import Sequence

from tightship._core import MemoryDesc
from tightship.engine.kernels.kernel_context import KernelContext
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.layouts import channels_last, dense_strides
from tightship.engine.program.program import Operand
from tightship.graph import Node


def plain(builder: Builder, name: str) -> Operand:
    """Return a value that strides can describe: in its own layout if possible, else row-major."""
    home = builder.home(name)
    return home if home.desc is None or home.desc.is_plain else builder.dense(name)


def byte_strides(operand: Operand) -> list[int]:
    """Return the byte strides, by axis, of an operand that `plain` returned."""
    item = operand.dtype.itemsize
    strides = dense_strides(operand.shape)
    if operand.desc is not None and operand.shape:
        strides = operand.desc.strides
    return [stride * item for stride in strides]


def broadcast_strides(operand: Operand, shape: Sequence[int]) -> list[int]:
    """Return byte strides under a shape that the operand broadcasts to; 0 where it repeats."""
    own = byte_strides(operand)
    ahead = len(shape) - len(own)
    return [0] * ahead + [
        0 if length == 1 and wide != 1 else stride
        for stride, length, wide in zip(own, operand.shape, shape[ahead:], strict=True)
    ]


def image_layout(source: Operand, shape: Sequence[int]) -> MemoryDesc | None:
    """Return channels last for a result of an image in that layout, which suits its readers."""
    if source.desc is None or source.desc != channels_last(source.shape, source.dtype):
        return None
    return channels_last(shape, source.dtype) if len(shape) == len(source.shape) > 2 else None


def site_of(builder: Builder, node: Node) -> KernelContext:
    """Describe a node with its types and the inputs that are known before the run."""
    inputs = tuple(builder.value(name) if name else None for name in node.inputs)
    outputs = tuple(builder.value(name) if name else None for name in node.outputs)
    return KernelContext(node, inputs, outputs, builder.known)
