"""Normalization and softmax over rows of a row-major operand."""

from dataclasses import dataclass

from tightship._core import NativeKernel
from tightship.engine.kernels.numbers import is_brain_float, is_real
from tightship.engine.kernels.site import Site, axis_of, require
from tightship.engine.kernels.softmax import normalized_rows
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import Node, element_count


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of `segments` parts; parameters for each element of a row, or for each part."""

    count: int
    segments: int
    segment_length: int
    parameters: int
    by_segment: bool = True


def normalization(builder: Builder, node: Node) -> bool:
    """One kernel over rows, in place where the operand dies; statistics where asked for."""
    site = site_of(builder, node)
    dtype = site.dtype(0)
    require((is_real(dtype) or is_brain_float(dtype)) and dtype == site.output_dtype())
    rows = ROWS[node.operator](site)
    names = [name for name in node.inputs if name]
    for index in range(1, len(node.inputs)):
        if site.has_input(index):
            require(site.dtype(index) == dtype)
            require(element_count(site.shape(index)) == rows.parameters)
    wide = "float64" if dtype.name == "float64" else "float32"
    for index in range(1, len(node.outputs)):
        require(not site.has_output(index) or site.output_dtype(index).name == wide)
    kernel = NativeKernel.normalization(
        dtype.name,
        (rows.count, rows.segments, rows.segment_length, rows.parameters),
        rows.by_segment,
        [site.has_input(1), site.has_input(2), site.has_output(1), site.has_output(2)],
        node.operator != "RMSNormalization",
        site.number("epsilon", 1e-5),
    )
    require(kernel is not None)
    assert kernel is not None
    sources = [builder.dense(name) for name in names]
    targets = [builder.output(name) for name in node.outputs if name]
    in_place = [(targets[0], sources[0])] if names.count(names[0]) == 1 else []
    builder.native(node, (node.operator, kernel), sources, targets, in_place=in_place)
    return True


def _over_trailing(site: Site) -> Rows:
    """Parameters have the shape of the normalized axes, and broadcast along none of them."""
    shape = site.shape(0)
    axis = axis_of(site.integer("axis", -1), len(shape))
    columns = element_count(shape[axis:])
    wanted = [length for length in shape[axis:] if length != 1]
    for index in range(1, len(site.inputs)):
        if site.has_input(index):
            require([length for length in site.shape(index) if length != 1] == wanted)
            require(len(site.shape(index)) <= len(shape) - axis)
    return Rows(element_count(shape[:axis]), 1, columns, columns, by_segment=False)


def _instance(site: Site) -> Rows:
    batch, channels, *spatial = site.shape(0)
    return Rows(batch * channels, 1, element_count(spatial), channels)


def _group(site: Site) -> Rows:
    """Scale and bias are one for each group before opset 21, for each channel since."""
    batch, channels, *spatial = site.shape(0)
    groups = site.integer("num_groups", 1)
    space, each = element_count(spatial), channels // groups
    if site.version < 21:
        return Rows(batch * groups, 1, each * space, groups)
    return Rows(batch * groups, each, space, channels)


def softmax(builder: Builder, node: Node) -> bool:
    """Softmax or LogSoftmax along any axis of a row-major operand, in place where it dies."""
    site = site_of(builder, node)
    require(site.dtype(0) == site.output_dtype())
    kernel = NativeKernel.softmax(
        site.dtype(0).name, normalized_rows(site), node.operator == "LogSoftmax"
    )
    require(kernel is not None)
    assert kernel is not None
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target], in_place=[(target, source)])
    return True


ROWS = {
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LayerNormalization": _over_trailing,
    "RMSNormalization": _over_trailing,
}

NORMALIZATION = {
    **{("", operator): normalization for operator in ROWS},
    ("", "LogSoftmax"): softmax,
    ("", "Softmax"): softmax,
}
"""By domain and operator."""
