"""Positions, order and running sums of the elements along one axis of a row-major operand."""

from tightship._core import NativeKernel
from tightship.engine.kernels.numbers import is_real
from tightship.engine.kernels.site import Site, axis_of, require
from tightship.engine.kernels.softmax import normalized_rows
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import site_of
from tightship.graph import DType, Node, element_count


def _position(builder: Builder, node: Node) -> bool:
    """The first or last place of the largest or smallest element; a NaN comes before both."""
    site = site_of(builder, node)
    rows = _around(site, axis_of(site.integer("axis", 0), len(site.shape(0))))
    require(rows[1] > 0)
    takes_last = bool(site.integer("select_last_index", 0))
    is_largest = node.operator == "ArgMax"
    kernel = NativeKernel.position(site.dtype(0).name, rows, is_largest, takes_last)
    require(kernel is not None)
    assert kernel is not None
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target])
    return True


def _hardmax(builder: Builder, node: Node) -> bool:
    """In place where the operand dies."""
    site = site_of(builder, node)
    require(is_real(site.dtype(0)))
    kernel = NativeKernel.hardmax(site.dtype(0).name, normalized_rows(site))
    require(kernel is not None)
    assert kernel is not None
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target], in_place=[(target, source)])
    return True


def _top_k(builder: Builder, node: Node) -> bool:
    """Always sorted; `k` is the length of the results' axis."""
    site = site_of(builder, node)
    require(site.has_output(0) and site.has_output(1) and len(site.shape(0)) > 0)
    axis = axis_of(site.integer("axis", -1), len(site.shape(0)))
    count, rows = site.output_shape()[axis], _around(site, axis)
    require(count <= rows[1] and site.output(1).dtype is DType.INT64)
    is_largest = bool(site.integer("largest", 1))
    kernel = NativeKernel.best(site.dtype(0).name, rows, count, is_largest)
    require(kernel is not None)
    assert kernel is not None
    builder.native(
        node,
        (node.operator, kernel),
        [builder.dense(node.inputs[0])],
        [builder.output(name) for name in node.outputs],
        scratch_bytes=kernel.scratch_bytes(builder.threads),
    )
    return True


def _cumulative_sum(builder: Builder, node: Node) -> bool:
    """Along an axis that is known, in place where the operand dies."""
    site = site_of(builder, node)
    axis = site.parameter(1)
    require(axis is not None and site.dtype(0) == site.output_dtype())
    assert axis is not None
    rows = _around(site, axis_of(int(axis.reshape(())), len(site.shape(0))))
    is_exclusive = bool(site.integer("exclusive", 0))
    is_reverse = bool(site.integer("reverse", 0))
    kernel = NativeKernel.running_sum(site.dtype(0).name, rows, is_exclusive, is_reverse)
    require(kernel is not None)
    assert kernel is not None
    source, target = builder.dense(node.inputs[0]), builder.output(node.outputs[0])
    builder.native(node, (node.operator, kernel), [source], [target], in_place=[(target, source)])
    return True


def _around(site: Site, axis: int) -> tuple[int, int, int]:
    shape = site.shape(0)
    require(len(shape) > 0)
    return element_count(shape[:axis]), shape[axis], element_count(shape[axis + 1 :])


RANKS = {
    ("", "ArgMax"): _position,
    ("", "ArgMin"): _position,
    ("", "CumSum"): _cumulative_sum,
    ("", "Hardmax"): _hardmax,
    ("", "TopK"): _top_k,
}
"""By domain and operator."""
