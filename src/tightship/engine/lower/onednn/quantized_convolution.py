"""Emits Conv of integers."""

from dataclasses import dataclass

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.quantized import Scales, integer_weights
from tightship.engine.lower.onednn.quantized_work import QuantizedOperands, emit
from tightship.engine.lower.passes.dequantized import Measured
from tightship.engine.lower.steps.builder import DST, Builder
from tightship.engine.lower.steps.layouts import dense_strides, sums_saturate
from tightship.engine.lower.steps.window import Window, window_of
from tightship.engine.program.program import Operand
from tightship.graph import Node


def quantized_convolution(builder: Builder, node: Node) -> None:
    """Emit Conv with one scale for all weights or for each output, and a constant bias.

    Where sums of two products saturate, tensors that the run measures are left to real numbers, as
    these come from ConvInteger, whose sums are exact.
    """
    tensor = builder.quantized(node.inputs[0])
    before = builder.value(node.inputs[0]).static_shape
    after = builder.value(node.outputs[0]).static_shape
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if tensor is None or len(before) not in (3, 4, 5) or 0 in (*before, *after):
        raise NotCoveredError
    require(not (isinstance(tensor, Measured) and sums_saturate()))
    weights = covered(integer_weights(builder, node.inputs[1], (0,)))
    require(not weights.zero and not (bias and builder.constant(bias) is None))
    kernel = builder.value(node.inputs[1]).static_shape[2:]
    window = window_of(node, kernel, before[2:], after[2:])
    stored = stored_weights(builder, node)
    outputs = 0b11 if len(stored.dims) > len(before) else 0b1
    vector = MemoryDesc([after[1]]) if bias else None
    operands = QuantizedOperands(tensor, weights, stored, outputs, bias, vector)
    emit(builder, node, _Convolution(operands, (before, after), window))


@dataclass(frozen=True, slots=True)
class _Convolution:
    operands: QuantizedOperands
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    """Shapes before and after."""
    window: Window

    def describe(self, scales: Scales, target: MemoryDesc) -> PrimitiveDesc | None:
        own = self.operands
        operands = [
            MemoryDesc.any(list(self.shapes[0]), own.tensor.dtype.value),
            MemoryDesc.any(own.stored.dims, "int8"),
            own.bias_desc,
            target,
        ]
        parts, attributes = self.window.parts, scales.attributes
        return fast(
            lambda: PrimitiveDesc.convolution(
                operands, parts, transposed=False, attributes=attributes
            )
        )

    def target(self, dtype: str) -> MemoryDesc | None:
        """Describe the result; real numbers get the layout that the primitive prefers."""
        free = MemoryDesc.any(list(self.shapes[1]), dtype)
        if dtype != "float32":
            return free
        plain = self.describe(self.operands.scaled(Scales()), free)
        return None if plain is None else plain.operand(DST)

    def output(self, builder: Builder, name: str, desc: MemoryDesc) -> Operand:
        return builder.output(name, desc)


def stored_weights(builder: Builder, node: Node) -> MemoryDesc:
    """Describe the weights' own bytes: [groups,] outputs, inputs, kernel."""
    first, *rest = builder.value(node.inputs[1]).static_shape
    groups = node.integer("group", 1)
    dims = [groups, first // groups, *rest]
    alone = int(groups == 1)
    return MemoryDesc(dims[alone:], "int8", dense_strides(dims)[alone:])
