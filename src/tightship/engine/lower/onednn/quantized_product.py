"""MatMul and Gemm of integers by a constant matrix."""

from dataclasses import dataclass

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, Builder
from tightship.engine.lower.dequantized import Measured, Quantization
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.post_ops import take_bias, with_epilogue
from tightship.engine.lower.onednn.quantized import (
    WEIGHTS,
    IntegerWeights,
    Scales,
    ending,
    ends_real,
    integer_weights,
    source,
)
from tightship.engine.program import Operand
from tightship.graph import Node, element_count
from tightship.planner.schedule import AliasKind

BIAS = 41
ALONG_COLUMNS = 0b10


def quantized_matmul(builder: Builder, node: Node) -> bool:
    """Leading axes of the left operand are rows."""
    right = builder.value(node.inputs[1]).static_shape
    if len(right) != 2 or len(builder.value(node.inputs[0]).static_shape) < 2:
        return False
    node, bias = take_bias(builder, node, right[1])
    return _emit(builder, node, MemoryDesc(list(right), "int8"), bias)


def quantized_gemm(builder: Builder, node: Node) -> bool:
    """With alpha and beta one, and the left operand as it is."""
    attributes = node.attributes
    factors = (attributes.get("alpha", 1.0), attributes.get("beta", 1.0))
    if factors != (1.0, 1.0) or attributes.get("transA", 0):
        return False
    stored = list(builder.value(node.inputs[1]).static_shape)
    weights = MemoryDesc(stored, "int8")
    if attributes.get("transB", 0):
        weights = MemoryDesc(stored[::-1], "int8", [1, stored[1]])
    return _emit(builder, node, weights, node.inputs[2] if len(node.inputs) > 2 else "")


@dataclass(frozen=True, slots=True)
class _Product:
    """Rows of integers times a matrix of integers, with an optional constant bias."""

    tensor: Quantization | Measured
    weights: IntegerWeights
    stored: MemoryDesc
    bias: str
    rows: int

    def target(self, dtype: str) -> MemoryDesc:
        return MemoryDesc([self.rows, self.stored.dims[1]], dtype)

    def scaled(self, scales: Scales) -> Scales:
        scales.add(1, self.tensor)
        scales.add_weights(self.weights, ALONG_COLUMNS)
        return scales

    def describe(self, scales: Scales, dtype: str) -> PrimitiveDesc | None:
        depth, columns = self.stored.dims
        operands = [
            MemoryDesc([self.rows, depth], self.tensor.dtype.value),
            MemoryDesc.any([depth, columns], "int8"),
            MemoryDesc([1, columns]) if self.bias else None,
            self.target(dtype),
        ]
        return fast(lambda: PrimitiveDesc.matmul(operands, scales.attributes))

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
            row = MemoryDesc([1, self.stored.dims[1]])
            reads.append((BIAS, builder.weight(self.bias, row, row)))
        target = desc.operand(DST)
        assert target == self.target(target.dtype)
        builder.primitive(node, desc, reads, [builder.output_as(node.writes[0], target)], share)


def _emit(builder: Builder, node: Node, stored: MemoryDesc, bias: str) -> bool:
    tensor = builder.quantized(node.inputs[0])
    depth, columns = stored.dims
    shape = builder.value(node.inputs[0]).static_shape
    if tensor is None or 0 in (*shape, columns):
        return False
    transposed = stored.strides == [1, depth] and depth != 1
    weights = integer_weights(builder, node.inputs[1], (0,) if transposed else (1,))
    constant = builder.constant(bias) if bias else None
    if weights is None or (bias and constant is None):
        return False
    if constant is not None and constant.shape not in ((columns,), (1, columns)):
        return False
    product = _Product(tensor, weights, stored, bias, element_count(shape[:-1]))
    return (_real if ends_real(node) else _quantized)(builder, node, product)


def _real(builder: Builder, node: Node, product: _Product) -> bool:
    """Real numbers are written, after any post-operations."""
    layout = product.target("float32")
    chosen = with_epilogue(
        builder, node, layout,
        lambda extra: product.describe(product.scaled(Scales(extra.attributes)), "float32"),
    )  # fmt: skip
    if chosen is None:
        return False
    desc, extra = chosen
    scales = product.scaled(Scales()).bound(builder)
    product.emit(builder, node, desc, [*scales, *extra.bound(builder)], extra.share)
    return True


def _quantized(builder: Builder, node: Node, product: _Product) -> bool:
    """Integers are written, after activations."""
    end = ending(builder, node)
    if end is None:
        return False
    scales = product.scaled(Scales())
    end.apply(scales)
    desc = product.describe(scales, end.target.dtype.value)
    if desc is None:
        return False
    product.emit(builder, node, desc, scales.bound(builder), [])
    return True


QUANTIZED_PRODUCT = {
    ("", "Gemm"): quantized_gemm,
    ("", "MatMul"): quantized_matmul,
}
"""By domain and operator."""
