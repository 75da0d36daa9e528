"""Conv of integers."""

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.lower.builder import DST, Builder
from tightship.engine.lower.layouts import dense_strides
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.quantized import (
    WEIGHTS,
    Scales,
    ending,
    integer_weights,
    source,
)
from tightship.engine.lower.onednn.window import window_of
from tightship.graph import Node

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
    end = ending(builder, node)
    if weights is None or end is None or (bias and builder.constant(bias) is None):
        return False
    stored = _weights(builder, node)
    scales = Scales()
    scales.add(1, tensor)
    grouped = len(stored.dims) > len(before)
    scales.add_weights(weights.name, weights.scale, 0b11 if grouped else 0b1)
    end.apply(scales)
    kernel = builder.value(node.inputs[1]).static_shape[2:]
    window = window_of(node, kernel, before[2:], after[2:])
    operands = [
        MemoryDesc.any(list(before), tensor.dtype.value),
        MemoryDesc.any(stored.dims, "int8"),
        MemoryDesc([after[1]]) if bias else None,
        MemoryDesc.any(list(after), end.dtype),
    ]
    parts, attributes = window.parts, scales.attributes
    desc = fast(
        lambda: PrimitiveDesc.convolution(operands, parts, transposed=False, attributes=attributes)
    )
    if desc is None:
        return False
    reads = [
        source(builder, tensor, desc.operand(1)),
        (WEIGHTS, builder.weight(weights.name, stored, desc.operand(WEIGHTS))),
        *scales.bound(builder),
    ]
    if bias:
        vector = MemoryDesc([after[1]])
        reads.append((BIAS, builder.weight(bias, vector, vector)))
    builder.primitive(node, desc, reads, [builder.output(node.writes[0], desc.operand(DST))])
    return True


def _weights(builder: Builder, node: Node) -> MemoryDesc:
    first, *rest = builder.value(node.inputs[1]).static_shape
    groups = node.attributes.get("group", 1)
    assert isinstance(groups, int)
    dims = [groups, first // groups, *rest]
    alone = int(groups == 1)
    return MemoryDesc(dims[alone:], "int8", dense_strides(dims)[alone:])


QUANTIZED_CONVOLUTION = {("", "Conv"): quantized_convolution}
"""By domain and operator."""
