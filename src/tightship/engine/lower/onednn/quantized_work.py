"""Shared parts of convolutions and products of integers by constant weights."""

from dataclasses import dataclass
from typing import Protocol

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import covered
from tightship.engine.lower.onednn.post_ops import with_epilogue
from tightship.engine.lower.onednn.quantized import (
    WEIGHTS,
    IntegerWeights,
    Scales,
    ending,
    ends_real,
    source,
)
from tightship.engine.lower.passes.dequantized import Measured, Quantization
from tightship.engine.lower.steps.builder import DST, Builder
from tightship.engine.program.program import Operand
from tightship.graph import Node
from tightship.planner.schedule import AliasKind

BIAS = 41


@dataclass(frozen=True, slots=True)
class QuantizedOperands:
    """Tensor of integers, constant weights, and optionally a constant bias of real numbers."""

    tensor: Quantization | Measured
    weights: IntegerWeights
    stored: MemoryDesc
    """Layout of the weights' own bytes."""
    outputs: int
    """Mask of the weights' axes along which outputs have scales."""
    bias: str = ""
    bias_desc: MemoryDesc | None = None

    def scaled(self, scales: Scales) -> Scales:
        """Add the scales and zero points of the tensor and the weights."""
        scales.add(1, self.tensor)
        scales.add_weights(self.weights, self.outputs)
        return scales

    def bound(self, builder: Builder, desc: PrimitiveDesc) -> list[tuple[int, Operand]]:
        """Return the operands in the layouts of a primitive."""
        packed = builder.weight(self.weights.name, self.stored, desc.operand(WEIGHTS))
        reads = [source(builder, self.tensor, desc.operand(1)), (WEIGHTS, packed)]
        if self.bias_desc is not None:
            reads.append((BIAS, builder.weight(self.bias, self.bias_desc, self.bias_desc)))
        return reads


class QuantizedWork(Protocol):
    """Primitive on such operands."""

    @property
    def operands(self) -> QuantizedOperands:
        """Number of inputs."""

    def describe(self, scales: Scales, target: MemoryDesc) -> PrimitiveDesc | None:
        """Describe the primitive that writes `target`; None if none is fast."""

    def target(self, dtype: str) -> MemoryDesc | None:
        """Describe the result; the layout may be free for integers."""

    def output(self, builder: Builder, name: str, desc: MemoryDesc) -> Operand:
        """Make the operand for the result."""


def emit(builder: Builder, node: Node, work: QuantizedWork) -> None:
    """Emit one step that writes real numbers, or integers after activations."""
    (_real if ends_real(node) else _quantized)(builder, node, work)


def _real(builder: Builder, node: Node, work: QuantizedWork) -> None:
    scaled, layout = work.operands.scaled, covered(work.target("float32"))
    desc, extra = with_epilogue(
        builder, node, layout,
        lambda extra: work.describe(scaled(Scales(extra.attributes)), layout),
    )  # fmt: skip
    more = [*scaled(Scales()).bound(builder), *extra.bound(builder)]
    _add(builder, node, work, (desc, more, extra.share))


def _quantized(builder: Builder, node: Node, work: QuantizedWork) -> None:
    end = covered(ending(builder, node))
    target = covered(work.target(end.target.dtype.value))
    scales = work.operands.scaled(Scales())
    end.apply(scales)
    desc = covered(work.describe(scales, target))
    _add(builder, node, work, (desc, scales.bound(builder), []))


def _add(
    builder: Builder,
    node: Node,
    work: QuantizedWork,
    chosen: tuple[PrimitiveDesc, list[tuple[int, Operand]], list[tuple[Operand, AliasKind]]],
) -> None:
    desc, more, share = chosen
    reads = [*work.operands.bound(builder, desc), *more]
    target = work.output(builder, node.writes[0], desc.operand(DST))
    builder.primitive(node, desc, reads, [target], share)
