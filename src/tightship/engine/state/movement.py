"""Rules of operators that move elements."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tightship.engine.state.capacity import Rewriter
from tightship.engine.state.rules import at_least, check_rows, elementwise, rule
from tightship.engine.state.writer import Axes, Beyond, Extent
from tightship.graph import DType, Node


@rule("Transpose")
def transpose(r: Rewriter, node: Node) -> None:
    r.keep(node)
    source, rank = r.axes_of(node.inputs[0]), len(r.shape(node.inputs[0]))
    order = node.attributes.get("perm") or tuple(range(rank))[::-1]
    assert isinstance(order, tuple)
    r.define(node.outputs[0], {a: source[o] for a, o in enumerate(order) if o in source})


@rule("Reshape")
def reshape(r: Rewriter, node: Node) -> None:
    source, target = node.inputs[0], node.outputs[0]
    shape = r.writer.constant(r.shape(target))
    moved = replace(node, attributes={}, version=max(node.version, 14))
    r.keep(moved, (source, shape))
    _define_in_order(r, node)


@rule("Squeeze", "Unsqueeze")
def squeeze(r: Rewriter, node: Node) -> None:
    reshape(r, replace(node, operator="Reshape"))


@rule("Flatten")
def flatten(r: Rewriter, node: Node) -> None:
    reshape(r, replace(node, operator="Reshape"))


def _define_in_order(r: Rewriter, node: Node) -> None:
    """Find the extended axes again where nothing moves but boundaries of axes."""
    source, target = node.inputs[0], node.outputs[0]
    before, after = r.axes_of(source), r.added(target)
    old, new = r.shape_of(source), r.shape(target)
    if [extent.added for _, extent in sorted(before.items())] != list(after.values()) or (
        _between(old, sorted(before)) != _between(new, sorted(after))
    ):
        raise r.refusal(node, "an axis of the past that is joined with another")
    extents = [extent for _, extent in sorted(before.items())]
    r.define(target, dict(zip(sorted(after), extents, strict=True)))
    if source in r.indices:
        r.indices.add(target)


def _between(shape: tuple[int, ...], axes: list[int]) -> list[int]:
    """Return the products of lengths before, between and after some axes."""
    edges = [-1, *axes, len(shape)]
    return [
        int(np.prod(shape[start + 1 : stop], dtype=np.int64)) for start, stop in pairwise(edges)
    ]


@rule("Expand")
def expand(r: Rewriter, node: Node) -> None:
    source, target = node.inputs[0], node.outputs[0]
    shape = r.shape(target)
    r.keep(replace(node, version=max(node.version, 13)), (source, r.writer.constant(shape)))
    shift = len(shape) - len(r.shape_of(source))
    own = r.axes_of(source)
    r.define(target, {
        axis: own.get(axis - shift, Extent(added, Beyond.FINITE))
        for axis, added in r.added(target).items()
    })  # fmt: skip
    if r.has_positions(source):
        r.indices.add(target)


@rule("Concat")
def concat(r: Rewriter, node: Node) -> None:
    target = node.outputs[0]
    rank = len(r.shape(target))
    axis = int(str(node.attributes["axis"])) % rank
    joined = tuple(name for name in node.inputs if r.shape(name)[axis])
    if joined and joined != node.inputs:  # an empty cache, which some exports begin with
        node = replace(node, inputs=joined)
    reads = [name for name in node.inputs if axis in r.axes_of(name)]
    if len(node.inputs) == 1:
        elementwise(r, replace(node, operator="Identity", attributes={}, version=13))
        return
    if not reads:
        r.keep(node)
        axes: Axes = {}
        for place, added in r.added(target).items():
            worst = max((e.beyond for name in node.inputs
                         if (e := r.axes_of(name).get(place))), default=Beyond.FINITE)  # fmt: skip
            axes[place] = Extent(added, worst)
        r.define(target, axes)
        if all(map(r.has_positions, node.inputs)):
            r.indices.add(target)
        return
    if len(node.inputs) != 2 or reads != [node.inputs[0]]:
        raise r.refusal(node, "rows of the past that are not the first of two operands")
    append(r, node, axis)


def append(r: Rewriter, node: Node, axis: int) -> None:
    """Write new rows behind those in use: `Concat(past, new)`."""
    past, new, target = *node.inputs[:2], node.outputs[0]
    extent = r.axes_of(past)[axis]
    own = replace(extent, added=extent.added + r.shape_of(new)[axis])
    scatter(r, (past, r.operand(new)), target, axis, extent.added)
    r.define(target, {**r.axes_of(past), axis: own})


def scatter(r: Rewriter, operands: tuple[str, str], target: str, axis: int, added: int) -> None:
    """Write `operands[1]` over rows of `operands[0]`, from `added` rows behind the past on."""
    writer = r.writer
    (past, new), starts = operands, writer.past_plus(added)
    value = writer.values[past]
    assert value.dtype is not None
    shape = value.static_shape
    if axis == 0:
        past, new = (
            writer.node("Reshape", (name, writer.constant((1, *sizes))), value.dtype, (1, *sizes))
            for name, sizes in ((past, shape), (new, r.shape_of(new)))
        )
        whole = writer.node("TensorScatter", (past, new, starts), value.dtype, (1, *shape), axis=1)
        writer.node("Reshape", (whole, writer.constant(shape)), value.dtype, shape, target)
        return
    if shape[0] != 1:
        count = (shape[0],)
        starts = writer.node("Expand", (starts, writer.constant(count)), DType.INT64, count)
    writer.node("TensorScatter", (past, new, starts), value.dtype, shape, target, axis=axis)


@rule("TensorScatter")
def tensor_scatter(r: Rewriter, node: Node) -> None:
    r.keep(node)
    r.define(node.outputs[0], r.axes_of(node.inputs[0]))


@rule("Split")
def split(r: Rewriter, node: Node) -> None:
    source = node.inputs[0]
    axis = int(str(node.attributes.get("axis", 0))) % len(r.shape_of(source))
    if axis in r.axes_of(source):
        raise r.refusal(node, "rows of the past to divide")
    r.keep(node)
    for name in node.writes:
        r.define(name, r.axes_of(source))


@rule("Tile")
def tile(r: Rewriter, node: Node) -> None:
    source = node.inputs[0]
    repeats = r.elements(node, 1) or ()
    if any(repeats[axis] != (0, 1) for axis in r.axes_of(source)) or any(a for a, _ in repeats):
        raise r.refusal(node, "rows of the past to repeat")
    r.keep(node)
    r.define(node.outputs[0], r.axes_of(source))


@rule("Pad")
def pad(r: Rewriter, node: Node) -> None:
    """Take rows beyond those in use for the padding of an extended axis, which are zeros."""
    source, target = node.inputs[0], node.outputs[0]
    before, rank = r.axes_of(source), len(r.shape_of(source))
    if not before:
        raise r.refusal(node, "lengths of the past")
    pads, axes = r.elements(node, 1), r.elements(node, 3)
    mode = node.attributes.get("mode", b"constant")
    assert pads is not None
    places = range(rank) if axes is None else [b % rank for _, b in axes]
    if any(a for a, _ in pads) or mode not in (b"constant", "constant"):
        raise r.refusal(node, "padding by the past")
    sizes = {axis: (pads[i][1], pads[len(places) + i][1]) for i, axis in enumerate(places)}
    found = dict(before)
    fill = r.elements(node, 2) if len(node.inputs) > 2 and node.inputs[2] in r.data else None
    given = r.followed.graph.constant(node.inputs[2]) if len(node.inputs) > 2 else None
    is_zero = fill is None and (given is None or not np.any(given.array()))
    for axis, extent in before.items():
        first, last = sizes.pop(axis, (0, 0))
        if first or not 0 <= last <= r.followed.steps or not is_zero or (
            last and extent.beyond is not Beyond.ZERO
        ):  # fmt: skip
            raise r.refusal(node, "rows to pad that are not zeros behind the past")
        found[axis] = replace(extent, added=extent.added + last)
    if any(first or last for first, last in sizes.values()):
        flat = [sizes.get(axis, (0, 0)) for axis in range(rank)]
        numbers = r.writer.constant([a for a, _ in flat] + [b for _, b in flat])
        r.keep(replace(node, version=max(node.version, 18)), (source, numbers, *node.inputs[2:3]))
    else:
        value = r.writer.values[source]
        assert value.dtype is not None
        r.writer.node("Identity", (r.operand(source),), value.dtype, value.static_shape, target)
    r.define(target, found)


@rule("Gather")
def gather(r: Rewriter, node: Node) -> None:
    source, index, target = *node.inputs[:2], node.outputs[0]
    rank = len(r.shape_of(source))
    axis = int(str(node.attributes.get("axis", 0))) % rank
    own = r.axes_of(source)
    if axis in own:
        index = _index(r, node, index, own[axis])
    r.keep(node, (source, index))
    if axis not in own and index in r.indices:  # known once the node's operands are written
        check_rows(r, node, source, r.shape_of(source)[axis])
    count = len(r.shape_of(node.inputs[1]))
    axes = {a if a < axis else a + count - 1: e for a, e in own.items() if a != axis}
    axes |= {axis + a: replace(e, beyond=Beyond.FINITE) for a, e in r.axes_of(index).items()}
    r.define(target, axes)


@rule("GatherND")
def gather_nd(r: Rewriter, node: Node) -> None:
    """Gather by tuples of indices, as exports of a mask by batch and column do."""
    source, index, target = *node.inputs[:2], node.outputs[0]
    places = r.shape_of(index)
    own, count = r.axes_of(source), places[-1]
    gathered = [axis for axis in own if axis < count]
    if node.attributes.get("batch_dims") or len(places) - 1 in r.axes_of(index):
        raise r.refusal(node, "batches of the past")
    if gathered and not r.has_positions(index):
        raise r.refusal(node, f"indices `{index}` of the past that may be negative")
    r.keep(node)
    beyond = max((own[axis].beyond for axis in gathered), default=Beyond.FINITE)
    axes = at_least(r.axes_of(index), max(beyond, Beyond.FINITE))
    axes |= {len(places) - 1 + a - count: e for a, e in own.items() if a >= count}
    r.define(target, axes)


def _index(r: Rewriter, node: Node, index: str, extent: Extent) -> str:
    """Return indices of an extended axis, from which the last rows are not counted backwards."""
    if index in r.data or index in r.indices:
        return index
    known = r.followed.elements(index)
    if known is None:
        raise r.refusal(node, f"indices `{index}` of the past that may be negative")
    if all(number >= 0 for _, number in known):
        return index
    shape = r.shape_of(index)
    numbers = [number if number >= 0 else extent.added + number for _, number in known]
    past = [number < 0 for _, number in known]
    if not all(past):
        raise r.refusal(node, "indices from both ends of the past")
    inputs = r.writer.past, r.writer.constant(np.array(numbers).reshape(-1))
    flat = r.writer.node("Add", inputs, DType.INT64, (len(numbers),))
    return r.writer.node("Reshape", (flat, r.writer.constant(shape)), DType.INT64, shape)


@rule("RotaryEmbedding")
def rotary_embedding(r: Rewriter, node: Node) -> None:
    if any(r.axes_of(name) for name in node.reads):
        raise r.refusal(node, "rows of the past to rotate")
    if len(node.inputs) > 3 and node.inputs[3]:
        check_rows(r, node, node.inputs[1], r.shape_of(node.inputs[1])[0])
    r.keep(node)
    r.define(node.outputs[0], {})


@rule("Trilu")
def trilu(r: Rewriter, node: Node) -> None:
    r.keep(node)
    r.define(node.outputs[0], at_least(r.axes_of(node.inputs[0]), Beyond.ZERO))
