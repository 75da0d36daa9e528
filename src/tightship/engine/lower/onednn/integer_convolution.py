"""Emits ConvInteger with constant int8 weights."""

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.integer_product import Zero
from tightship.engine.lower.onednn.quantized import WEIGHTS, ZERO_POINTS
from tightship.engine.lower.onednn.quantized_convolution import stored_weights
from tightship.engine.lower.passes.dequantized import NARROW
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.window import window_of
from tightship.graph import DType, Node, element_count


def convolution_integer(builder: Builder, node: Node) -> None:
    """Emit sums in int32, with at most one zero point for the image and none for the weights."""
    image, weights = (builder.value(name) for name in node.inputs[:2])
    before, after = image.static_shape, builder.value(node.outputs[0]).static_shape
    zero, weights_zero = (*node.inputs[2:], "", "")[:2]
    require(not weights_zero and weights.dtype is DType.INT8)
    covered(builder.constant(node.inputs[1]))
    if image.dtype not in NARROW or len(before) not in (3, 4, 5) or 0 in (*before, *after):
        raise NotCoveredError
    require(not zero or element_count(builder.value(zero).static_shape) == 1)
    window = window_of(node, weights.static_shape[2:], before[2:], after[2:])
    attributes, stored = Attributes(), stored_weights(builder, node)
    if zero:
        attributes.zero_point(SRC, 0)
    operands = [
        MemoryDesc.any(list(before), image.dtype.value),
        MemoryDesc.any(stored.dims, "int8"),
        None,
        MemoryDesc.any(list(after), "int32"),
    ]
    desc = covered(
        fast(
            lambda: PrimitiveDesc.convolution(
                operands, window.parts, transposed=False, attributes=attributes
            )
        )
    )
    reads = [
        (SRC, builder.in_layout(node.inputs[0], desc.operand(SRC))),
        (WEIGHTS, builder.weight(node.inputs[1], stored, desc.operand(WEIGHTS))),
    ]
    if zero:
        reads.append((ZERO_POINTS + SRC, Zero(zero, 0).operand(builder, node)))
    plain, written = MemoryDesc(list(after), "int32"), desc.operand(DST)
    if written == plain:
        builder.primitive(node, desc, reads, [builder.output_as(node.outputs[0], plain)])
        return
    room = builder.room(f"{node.outputs[0]}.sums", written)
    builder.primitive(node, desc, reads, [room])
    builder.reorder(room, builder.output_as(node.outputs[0], plain))
