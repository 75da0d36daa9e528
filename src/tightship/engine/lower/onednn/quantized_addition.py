"""Emits the addition of two tensors of integers."""

from tightship._core import MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError, covered, require
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.quantized import SCALES, Scales, ending
from tightship.engine.lower.passes.dequantized import Quantization, scalar
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.graph import Node

SRC_1 = 2


def quantized_addition(builder: Builder, node: Node) -> None:
    """Emit Add of equal shapes with a quantized result: scaled, shifted once, rounded once."""
    left, right = (builder.quantized(name) for name in node.inputs)
    if not isinstance(left, Quantization) or not isinstance(right, Quantization):
        raise NotCoveredError
    end = covered(ending(builder, node))
    require(builder.value(node.inputs[0]).shape == builder.value(node.inputs[1]).shape)
    layout = covered(builder.home(left.integers).desc)
    require(left.integers != right.integers and layout.is_plain)
    other = MemoryDesc(layout.dims, right.dtype.value, layout.strides)
    scales = Scales()
    for argument, tensor in ((SRC, left), (SRC_1, right)):
        scales.attributes.scale(argument, 0)
        name = f"{tensor.integers}.argument{argument}.scale"
        scales.operands.append((SCALES + argument, name, scalar(tensor.scale)))
    shift = left.zero * left.scale + right.zero * right.scale
    target = end.target
    if end.activations:
        scales.attributes.add_eltwise("linear", 1.0, -shift)
        for activation in end.activations:
            scales.attributes.add_eltwise(*activation)
        shift = 0.0
    scales.attributes.add_eltwise("linear", 1 / target.scale, target.zero - shift / target.scale)
    result = MemoryDesc(layout.dims, target.dtype.value, layout.strides)
    desc = covered(
        fast(lambda: PrimitiveDesc.binary("add", layout, other, result, scales.attributes))
    )
    reads = [
        (SRC, builder.in_layout(left.integers, layout)),
        (SRC_1, builder.in_layout(right.integers, other)),
        *scales.bound(builder),
    ]
    builder.primitive(node, desc, reads, [builder.output(node.writes[0], result)])
