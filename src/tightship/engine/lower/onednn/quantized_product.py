"""MatMul and Gemm of integers by a constant matrix."""

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, Builder
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.matmul import take_bias
from tightship.engine.lower.onednn.quantized import (
    WEIGHTS,
    Scales,
    ending,
    integer_weights,
    source,
)
from tightship.graph import Node, element_count

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


def _emit(builder: Builder, node: Node, stored: MemoryDesc, bias: str) -> bool:
    tensor = builder.quantized(node.inputs[0])
    depth, columns = stored.dims
    shape = builder.value(node.inputs[0]).static_shape
    if tensor is None or 0 in (*shape, columns):
        return False
    transposed = stored.strides == [1, depth] and depth != 1
    weights = integer_weights(builder, node.inputs[1], (0,) if transposed else (1,))
    end = ending(builder, node)
    constant = builder.constant(bias) if bias else None
    if weights is None or end is None or (bias and constant is None):
        return False
    if constant is not None and constant.shape not in ((columns,), (1, columns)):
        return False
    scales = Scales()
    scales.add(1, tensor)
    scales.add_weights(weights.name, weights.scale, ALONG_COLUMNS)
    end.apply(scales)
    rows, row = element_count(shape[:-1]), MemoryDesc([1, columns])
    target = MemoryDesc([rows, columns], end.dtype)
    operands = [
        MemoryDesc([rows, depth], tensor.dtype.value),
        MemoryDesc.any([depth, columns], "int8"),
        row if bias else None,
        target,
    ]
    desc = fast(lambda: PrimitiveDesc.matmul(operands, scales.attributes))
    if desc is None:
        return False
    reads = [
        source(builder, tensor, desc.operand(1)),
        (WEIGHTS, builder.weight(weights.name, stored, desc.operand(WEIGHTS))),
        *scales.bound(builder),
    ]
    if bias:
        reads.append((BIAS, builder.weight(bias, row, row)))
    assert desc.operand(DST) == target
    builder.primitive(node, desc, reads, [builder.output_as(node.writes[0], target)])
    return True


QUANTIZED_PRODUCT = {
    ("", "Gemm"): quantized_gemm,
    ("", "MatMul"): quantized_matmul,
}
"""By domain and operator."""
