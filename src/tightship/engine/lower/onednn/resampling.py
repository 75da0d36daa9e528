"""Emits Resize for modes in which oneDNN agrees with ONNX."""

from math import isclose

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import KernelContext, covered, require
from tightship.engine.kernels.resize import resize_scales
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.layouts import channels_last
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import Node

CENTRED = ("half_pixel", "pytorch_half_pixel")


def resize(builder: Builder, node: Node) -> None:
    """Emit a Resize of images' spatial axes, linear, or nearest by whole factors."""
    before = builder.value(node.inputs[0]).static_shape
    after = builder.value(node.outputs[0]).static_shape
    require(len(before) in (3, 4, 5) and before[:2] == after[:2] and _is_covered(node))
    linear = node.attributes.get("mode", "nearest") == "linear"
    pairs = list(zip(after, before, strict=True))
    require(linear or not any(new % old for new, old in pairs))
    require(_is_by_lengths(site_of(builder, node)))
    own = builder.home(node.inputs[0]).desc
    layout = channels_last(before) if own is None or own.is_plain else own
    free = MemoryDesc.any(list(after))
    desc = covered(fast(lambda: PrimitiveDesc.resampling(linear, layout, free, Attributes())))
    source = builder.in_layout(node.inputs[0], layout)
    target = builder.output(node.outputs[0], desc.operand(DST))
    builder.primitive(node, desc, [(SRC, source)], [target])


def _is_by_lengths(context: KernelContext) -> bool:
    """Whether the factors equal the ratios of lengths, which oneDNN uses."""
    scales = resize_scales(context)
    return all(
        isclose(scale * old, new, rel_tol=1e-6)
        for scale, old, new in zip(scales, context.shape(0), context.output_shape(), strict=True)
    )


def _is_covered(node: Node) -> bool:
    attributes = node.attributes
    mode = attributes.get("mode", "nearest")
    where = attributes.get("coordinate_transformation_mode", "half_pixel")
    if attributes.get("antialias", 0) or attributes.get("exclude_outside", 0) or node.version < 11:
        return False
    if mode == "linear":
        return where in CENTRED
    rounding = attributes.get("nearest_mode", "round_prefer_floor")
    repeats = {("asymmetric", "floor")} | {(c, r) for c in CENTRED for r in
               ("round_prefer_floor", "round_prefer_ceil")}  # fmt: skip
    return mode == "nearest" and (where, rounding) in repeats
