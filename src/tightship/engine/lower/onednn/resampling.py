"""Emits Resize for modes in which oneDNN agrees with ONNX."""

from math import isclose

from tightship._core import Attributes, MemoryDesc, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.kernels.resize import resize_scales
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.steps.builder import SRC, Builder
from tightship.engine.lower.steps.layouts import channels_last
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import Node

CENTRED = ("half_pixel", "pytorch_half_pixel")


def resize(builder: Builder, node: Node) -> bool:
    """Emit a Resize of images' spatial axes, linear, or nearest by whole factors."""
    before = builder.value(node.inputs[0]).static_shape
    after = builder.value(node.outputs[0]).static_shape
    if len(before) not in (3, 4, 5) or before[:2] != after[:2] or not _is_covered(node):
        return False
    linear = node.attributes.get("mode", "nearest") == "linear"
    pairs = list(zip(after, before, strict=True))
    if not linear and any(new % old for new, old in pairs):
        return False
    if not _is_by_lengths(builder, node):
        return False
    home = builder.home(node.inputs[0])
    own = home.desc is not None and not home.desc.is_plain
    layouts = [home.desc] if own else [channels_last(before)]
    for layout in layouts:
        assert layout is not None
        desc = fast(
            lambda layout=layout: PrimitiveDesc.resampling(  # type: ignore[misc]
                linear, layout, MemoryDesc.any(list(after)), Attributes()
            )
        )
        if desc is not None:
            source = builder.in_layout(node.inputs[0], layout)
            target = builder.output(node.outputs[0], desc.operand(17))
            builder.primitive(node, desc, [(SRC, source)], [target])
            return True
    return False


def _is_by_lengths(builder: Builder, node: Node) -> bool:
    """Whether the factors are known and equal the ratios of lengths, which oneDNN uses."""
    context = site_of(builder, node)
    try:
        scales = resize_scales(context)
    except NotCoveredError:
        return False
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
