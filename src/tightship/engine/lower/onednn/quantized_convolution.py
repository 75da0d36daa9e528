"""Conv of integers."""

from dataclasses import dataclass

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, Builder
from tightship.engine.lower.dequantized import Measured, Quantization
from tightship.engine.lower.layouts import dense_strides
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.post_ops import with_epilogue
from tightship.engine.lower.onednn.quantized import (
    WEIGHTS,
    IntegerWeights,
    Scales,
    ending,
    ends_real,
    integer_weights,
    source,
)
from tightship.engine.lower.onednn.window import Window, window_of
from tightship.engine.program import Operand
from tightship.graph import Node
from tightship.planner.schedule import AliasKind

BIAS = 41


def quantized_convolution(builder: Builder, node: Node) -> bool:
    """Conv by weights quantized as a whole or for each output channel, with constant bias."""
    tensor = builder.quantized(node.inputs[0])
    before = builder.value(node.inputs[0]).static_shape
    after = builder.value(node.outputs[0]).static_shape
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if tensor is None or len(before) not in (3, 4, 5) or 0 in (*before, *after):
        return False
    weights = integer_weights(builder, node.inputs[1], (0,))
    if weights is None or weights.zero or (bias and builder.constant(bias) is None):
        return False
    kernel = builder.value(node.inputs[1]).static_shape[2:]
    window = window_of(node, kernel, before[2:], after[2:])
    stored = stored_weights(builder, node)
    convolved = _Convolution(tensor, weights, stored, bias, (before, after), window)
    return (_real if ends_real(node) else _quantized)(builder, node, convolved)


@dataclass(frozen=True, slots=True)
class _Convolution:
    tensor: Quantization | Measured
    weights: IntegerWeights
    stored: MemoryDesc
    bias: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    """Before and after."""
    window: Window

    def scaled(self, scales: Scales) -> Scales:
        scales.add(1, self.tensor)
        grouped = len(self.stored.dims) > len(self.shapes[0])
        scales.add_weights(self.weights, 0b11 if grouped else 0b1)
        return scales

    def describe(self, scales: Scales, target: MemoryDesc) -> PrimitiveDesc | None:
        operands = [
            MemoryDesc.any(list(self.shapes[0]), self.tensor.dtype.value),
            MemoryDesc.any(self.stored.dims, "int8"),
            MemoryDesc([self.shapes[1][1]]) if self.bias else None,
            target,
        ]
        parts, attributes = self.window.parts, scales.attributes
        return fast(
            lambda: PrimitiveDesc.convolution(
                operands, parts, transposed=False, attributes=attributes
            )
        )

    def emit(
        self,
        builder: Builder,
        node: Node,
        desc: PrimitiveDesc,
        extra: list[tuple[int, Operand]],
        share: list[tuple[Operand, AliasKind]],
    ) -> None:
        packed = builder.weight(self.weights.name, self.stored, desc.operand(WEIGHTS))
        reads = [source(builder, self.tensor, desc.operand(1)), (WEIGHTS, packed), *extra]
        if self.bias:
            vector = MemoryDesc([self.shapes[1][1]])
            reads.append((BIAS, builder.weight(self.bias, vector, vector)))
        target = builder.output(node.writes[0], desc.operand(DST))
        builder.primitive(node, desc, reads, [target], share)


def _real(builder: Builder, node: Node, convolved: _Convolution) -> bool:
    """Real numbers are written, after any post-operations."""
    free = MemoryDesc.any(list(convolved.shapes[1]))
    plain = convolved.describe(convolved.scaled(Scales()), free)
    if plain is None:
        return False
    layout = plain.operand(DST)
    chosen = with_epilogue(
        builder, node, layout,
        lambda extra: convolved.describe(convolved.scaled(Scales(extra.attributes)), layout),
    )  # fmt: skip
    if chosen is None:
        return False
    desc, extra = chosen
    scales = convolved.scaled(Scales()).bound(builder)
    convolved.emit(builder, node, desc, [*scales, *extra.bound(builder)], extra.share)
    return True


def _quantized(builder: Builder, node: Node, convolved: _Convolution) -> bool:
    """Integers are written, after activations."""
    end = ending(builder, node)
    if end is None:
        return False
    scales = convolved.scaled(Scales())
    end.apply(scales)
    free = MemoryDesc.any(list(convolved.shapes[1]), end.target.dtype.value)
    desc = convolved.describe(scales, free)
    if desc is None:
        return False
    convolved.emit(builder, node, desc, scales.bound(builder), [])
    return True


def stored_weights(builder: Builder, node: Node) -> MemoryDesc:
    """The weights' own bytes: [groups,] outputs, inputs, kernel."""
    first, *rest = builder.value(node.inputs[1]).static_shape
    groups = node.attributes.get("group", 1)
    assert isinstance(groups, int)
    dims = [groups, first // groups, *rest]
    alone = int(groups == 1)
    return MemoryDesc(dims[alone:], "int8", dense_strides(dims)[alone:])


QUANTIZED_CONVOLUTION = {("", "Conv"): quantized_convolution}
"""By domain and operator."""
