"""Rule of Slice: parts of the past, and parts of tables that the past length chooses."""

from dataclasses import dataclass

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.follow import Linear
from tightship.engine.state.rules import check_rows, rule
from tightship.engine.state.writer import Axes, Beyond, Extent
from tightship.graph import Node

FAR = 2**31 - 1
"""Ends from here on mean the end of the axis."""


@dataclass(slots=True)
class _Part:
    """Value of which some axes have been sliced."""

    name: str
    shape: list[int]
    axes: Axes


@rule("Slice")
def slice_rule(r: Rewriter, node: Node) -> None:
    source, target = node.inputs[0], node.outputs[0]
    rank = len(r.shape_of(source))
    if node.version < 10:
        raise r.refusal(node, "bounds as attributes")
    starts, ends, axes, steps = (r.elements(node, index) for index in range(1, 5))
    assert starts is not None
    assert ends is not None
    places = list(range(len(starts))) if axes is None else [b % rank for _, b in axes]
    strides = [1] * len(starts) if steps is None else [b for _, b in steps]
    part = _Part(r.operand(source), list(r.shape_of(source)), dict(r.axes_of(source)))
    for start, end, axis, stride in zip(starts, ends, places, strides, strict=True):
        if axis in part.axes:
            _of_past(r, node, part, axis, (start, end, stride))
        elif start[0] or end[0]:
            _of_table(r, node, part, axis, (start, end, stride))
        else:
            _plain(r, part, axis, (start[1], end[1], stride))
    dtype = r.followed.graph.value(target).dtype
    assert dtype is not None
    r.writer.node("Identity", (part.name,), dtype, tuple(part.shape), target)
    r.define(target, part.axes)


def _plain(r: Rewriter, part: _Part, axis: int, bounds: tuple[int, int, int]) -> None:
    part.shape[axis] = len(range(part.shape[axis])[slice(*bounds)])
    _slice(r, part, axis, bounds)


def _slice(r: Rewriter, part: _Part, axis: int, bounds: tuple[int, int, int]) -> None:
    start, end, stride = ([bound] for bound in bounds)
    constants = [r.writer.constant(each) for each in (start, end, [axis], stride)]
    dtype = r.writer.values[part.name].dtype
    assert dtype is not None
    part.name = r.writer.node("Slice", (part.name, *constants), dtype, tuple(part.shape))


def _of_past(
    r: Rewriter, node: Node, part: _Part, axis: int, bounds: tuple[Linear, Linear, int]
) -> None:
    """Slice an extended axis: all of it, its first rows, or a fixed number from the past on."""
    extent = part.axes[axis]
    start, end = (_from_front(bound, extent) for bound in bounds[:2])
    if bounds[2] == 1 and start == (0, 0) and end[0] == 1 and end[1] <= extent.added:
        if end[1] < extent.added:
            beyond = max(extent.beyond, Beyond.FINITE)
            part.axes[axis] = Extent(end[1], beyond)
        return
    if bounds[2] != 1 or start[0] != 1 or end[0] != 1 or end[1] > extent.added or start[1] < 0:
        raise r.refusal(node, "a part of the past that depends on its length")
    _gather(r, part, axis, start[1], end[1] - start[1])
    del part.axes[axis]


def _from_front(bound: Linear, extent: Extent) -> Linear:
    factor, rest = bound
    if not factor and rest >= FAR:
        return 1, extent.added
    if not factor and rest < 0:
        return 1, extent.added + rest
    return bound


def _of_table(
    r: Rewriter, node: Node, part: _Part, axis: int, bounds: tuple[Linear, Linear, int]
) -> None:
    """Slice a table of which the past length chooses the rows."""
    start, end, stride = bounds
    capacity = r.followed.capacity
    if stride != 1 or end[0] != 1 or start not in ((0, 0), (1, start[1])) or start[1] < 0:
        raise r.refusal(node, "a part of a table that is not one interval up to the last row")
    check_rows(r, node, node.inputs[0], part.shape[axis])
    if start[0]:
        _gather(r, part, axis, start[1], end[1] - start[1])
        return
    part.shape[axis] = capacity
    _slice(r, part, axis, (0, capacity, 1))
    part.axes[axis] = Extent(end[1], Beyond.ANY)


def _gather(r: Rewriter, part: _Part, axis: int, added: int, count: int) -> None:
    part.shape[axis] = count
    dtype = r.writer.values[part.name].dtype
    assert dtype is not None
    inputs = part.name, r.writer.positions(added, count)
    part.name = r.writer.node("Gather", inputs, dtype, tuple(part.shape), axis=axis)
