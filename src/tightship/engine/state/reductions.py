"""Rules of operators that read whole rows: sums, softmax, normalizations."""

import numpy as np

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.rules import at_least, rule, zeroed
from tightship.engine.state.writer import Axes, Beyond, Extent
from tightship.graph import DType, Node
from tightship.graph.operators import row_of
from tightship.graph.operators.row import Category

LAST_AXIS_FROM = 13
"""First opset in which Softmax reduces one axis."""


@rule("Softmax")
def softmax(r: Rewriter, node: Node) -> None:
    source, target = node.inputs[0], node.outputs[0]
    rank, axes = len(r.shape_of(source)), dict(r.axes_of(source))
    default = -1 if node.version >= LAST_AXIS_FROM else 1
    axis = int(str(node.attributes.get("axis", default))) % rank
    if node.version < LAST_AXIS_FROM and axis != rank - 1:
        raise r.refusal(node, "several axes, one of which grows with the past")
    name, kept = source, at_least(axes, Beyond.FINITE)
    if axis in axes:
        name = r.writer.masked(source, axis, axes[axis], -np.inf)
        kept[axis] = Extent(axes[axis].added, Beyond.ZERO)
    r.keep(node, (name,))
    r.define(target, kept)


def _reduced(r: Rewriter, node: Node) -> list[int]:
    """Return the axes that a reduction removes."""
    rank = len(r.shape_of(node.inputs[0]))
    given = node.attributes.get("axes")
    found = [b for _, b in r.elements(node, 1) or ()] if given is None else given
    if not found and node.attributes.get("noop_with_empty_axes", 0):
        return []
    axes = found if isinstance(found, list | tuple) else []
    return sorted({int(str(axis)) % rank for axis in axes or range(rank)})


def _kept(r: Rewriter, node: Node, gone: list[int]) -> Axes:
    """Return the extended axes that a reduction leaves."""
    shift = 0 if node.attributes.get("keepdims", 1) else 1
    return {
        axis - shift * sum(each < axis for each in gone): Extent(
            extent.added, max(extent.beyond, Beyond.FINITE)
        )
        for axis, extent in r.axes_of(node.inputs[0]).items()
        if axis not in gone
    }


@rule("ReduceSum")
def reduce_sum(r: Rewriter, node: Node) -> None:
    gone, name = _reduced(r, node), node.inputs[0]
    for axis in set(gone) & r.axes_of(name).keys():
        name = zeroed(r, node.inputs[0], axis)
        if len(set(gone) & r.axes_of(node.inputs[0]).keys()) > 1:
            raise r.refusal(node, "two axes that grow with the past")
    r.keep(node, (name, *node.inputs[1:]))
    r.define(node.outputs[0], _kept(r, node, gone))


@rule("ReduceMax", "ReduceMin")
def reduce_extreme(r: Rewriter, node: Node) -> None:
    gone, source = _reduced(r, node), node.inputs[0]
    name, axes = source, r.axes_of(source)
    past = sorted(set(gone) & axes.keys())
    if len(past) > 1:
        raise r.refusal(node, "two axes that grow with the past")
    if past:
        dtype = r.writer.values[source].dtype
        assert dtype is not None
        name = r.writer.masked(source, past[0], axes[past[0]], _extreme(dtype, node.operator))
    r.keep(node, (name, *node.inputs[1:]))
    r.define(node.outputs[0], _kept(r, node, gone))


def _extreme(dtype: DType, operator: str) -> float | int | bool:
    """Return the number that changes no maximum, or no minimum."""
    is_max = operator == "ReduceMax"
    if dtype is DType.BOOL:
        return not is_max
    if dtype.numpy.kind in "iu":
        limits = np.iinfo(dtype.value)
        return int(limits.min if is_max else limits.max)
    return -np.inf if is_max else np.inf


@rule("ReduceMean", "ReduceProd")
def reduce_counted(r: Rewriter, node: Node) -> None:
    gone = _reduced(r, node)
    if set(gone) & r.axes_of(node.inputs[0]).keys():
        raise r.refusal(node, "an axis to reduce that grows with the past")
    r.keep(node)
    r.define(node.outputs[0], _kept(r, node, gone))


@rule("CumSum")
def cum_sum(r: Rewriter, node: Node) -> None:
    source = node.inputs[0]
    axis = r.elements(node, 1)
    assert axis is not None
    place = axis[0][1] % len(r.shape_of(source))
    if place in r.axes_of(source) and node.attributes.get("reverse", 0):
        raise r.refusal(node, "a sum from the end of the past")
    r.keep(node)
    r.define(node.outputs[0], at_least(r.axes_of(source), Beyond.FINITE))


@rule("LayerNormalization", "RMSNormalization")
def normalization(r: Rewriter, node: Node) -> None:
    source, (first, *others) = node.inputs[0], node.writes
    axis = int(str(node.attributes.get("axis", -1))) % len(r.shape_of(source))
    axes = r.axes_of(source)
    if others or any(place >= axis for place in axes) or row_of(node).category is Category.OTHER:
        raise r.refusal(node, "an axis to normalize that grows with the past")
    r.keep(node)
    r.define(first, at_least(axes, Beyond.FINITE))
