"""Emits MatMul and Gemm of integers by a constant matrix."""

from dataclasses import dataclass

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.quantized import Scales, integer_weights
from tightship.engine.lower.onednn.quantized_work import QuantizedOperands, emit
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.fused_nodes import take_bias
from tightship.engine.lower.steps.layouts import sums_saturate
from tightship.engine.program.program import Operand
from tightship.graph import Node, element_count

ALONG_COLUMNS = 0b10


def quantized_matmul(builder: Builder, node: Node) -> None:
    """Emit MatMul; the left operand's leading axes are flattened to rows."""
    right = builder.value(node.inputs[1]).static_shape
    require(len(right) == 2 and len(builder.value(node.inputs[0]).static_shape) >= 2)
    node, bias = take_bias(builder, node, right[1])
    _emit(builder, node, MemoryDesc(list(right), "int8"), bias)


def quantized_gemm(builder: Builder, node: Node) -> None:
    """Emit Gemm with alpha and beta one, and a left operand that is not transposed."""
    attributes = node.attributes
    factors = (attributes.get("alpha", 1.0), attributes.get("beta", 1.0))
    require(factors == (1.0, 1.0) and not attributes.get("transA", 0))
    stored = list(builder.value(node.inputs[1]).static_shape)
    weights = MemoryDesc(stored, "int8")
    if attributes.get("transB", 0):
        weights = MemoryDesc(stored[::-1], "int8", [1, stored[1]])
    _emit(builder, node, weights, node.inputs[2] if len(node.inputs) > 2 else "")


@dataclass(frozen=True, slots=True)
class _Product:
    """Product of rows of integers and a matrix of integers."""

    operands: QuantizedOperands
    rows: int

    def describe(self, scales: Scales, target: MemoryDesc) -> PrimitiveDesc | None:
        own = self.operands
        depth, columns = own.stored.dims
        operands = [
            MemoryDesc([self.rows, depth], own.tensor.dtype.value),
            MemoryDesc.any([depth, columns], "int8"),
            own.bias_desc,
            target,
        ]
        return fast(lambda: PrimitiveDesc.matmul(operands, scales.attributes))

    def target(self, dtype: str) -> MemoryDesc:
        return MemoryDesc([self.rows, self.operands.stored.dims[1]], dtype)

    def output(self, builder: Builder, name: str, desc: MemoryDesc) -> Operand:
        assert desc == self.target(desc.dtype)
        return builder.output_as(name, desc)


def _emit(builder: Builder, node: Node, stored: MemoryDesc, bias: str) -> None:
    tensor = builder.quantized(node.inputs[0])
    depth, columns = stored.dims
    shape = builder.value(node.inputs[0]).static_shape
    if tensor is None or 0 in (*shape, columns):
        raise NotCoveredError
    require(not sums_saturate())  # products of what the integers stand for are exact
    transposed = stored.strides == [1, depth] and depth != 1
    weights = covered(integer_weights(builder, node.inputs[1], (0,) if transposed else (1,)))
    if bias:
        require(covered(builder.constant(bias)).shape in ((columns,), (1, columns)))
    row = MemoryDesc([1, columns]) if bias else None
    operands = QuantizedOperands(tensor, weights, stored, ALONG_COLUMNS, bias, row)
    emit(builder, node, _Product(operands, element_count(shape[:-1])))
