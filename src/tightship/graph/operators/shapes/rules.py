"""Symbolic shape rules: shapes of outputs from shapes of inputs, by operator."""

from tightship.graph.length import quotient
from tightship.graph.operators.shapes.shape_context import (
    NoRuleError,
    Shape,
    ShapeContext,
    broadcast,
    product,
)

UNEVEN_FROM = 18
"""First opset in which the last part of a Split may be shorter than the others."""


def same(context: ShapeContext) -> list[Shape]:
    return [context.shape()]


def elementwise(context: ShapeContext) -> list[Shape]:
    return [broadcast(*(context.shape(index) for index in range(len(context.node.inputs))))]


def transpose(context: ShapeContext) -> list[Shape]:
    shape = context.shape()
    order = context.integers("perm") or tuple(range(len(shape)))[::-1]
    return [tuple(shape[axis] for axis in order)]


def reshape(context: ShapeContext) -> list[Shape]:
    shape, wanted = context.shape(), context.integers("shape", 1)
    if wanted is None:
        raise NoRuleError
    copies = not context.integer("allowzero", 0)
    found = [
        shape[axis] if copies and axis < len(shape) and length == 0 else length
        for axis, length in enumerate(wanted)
    ]
    free = [axis for axis, length in enumerate(found) if length == -1]
    count = product(shape)
    if free:
        (axis,) = free
        left = quotient(count, product([*found[:axis], *found[axis + 1 :]]))
        if left is None:
            raise NoRuleError
        found[axis] = left
    elif product(found) != count:
        raise NoRuleError
    return [tuple(found)]


def flatten(context: ShapeContext) -> list[Shape]:
    shape, axis = context.shape(), context.integer("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    return [(product(shape[:axis]), product(shape[axis:]))]


def squeeze(context: ShapeContext) -> list[Shape]:
    shape, axes = context.shape(), context.integers("axes", 1)
    if axes is None:
        return [tuple(length for length in shape if length != 1)]
    gone = {axis % len(shape) for axis in axes}
    if any(shape[axis] != 1 for axis in gone):
        raise NoRuleError
    return [tuple(length for axis, length in enumerate(shape) if axis not in gone)]


def unsqueeze(context: ShapeContext) -> list[Shape]:
    axes = context.integers("axes", 1)
    if axes is None:
        raise NoRuleError
    rank = len(context.shape()) + len(axes)
    added, rest = {axis % rank for axis in axes}, iter(context.shape())
    return [tuple(1 if axis in added else next(rest) for axis in range(rank))]


def concat(context: ShapeContext) -> list[Shape]:
    shapes = [context.shape(index) for index in range(len(context.node.inputs))]
    axis = context.integer("axis", 0) % len(shapes[0])
    total = shapes[0][axis]
    for shape in shapes[1:]:
        if len(shape) != len(shapes[0]) or any(
            length != other
            for place, (length, other) in enumerate(zip(shape, shapes[0], strict=True))
            if place != axis
        ):
            raise NoRuleError
        total = total + shape[axis]
    return [(*shapes[0][:axis], total, *shapes[0][axis + 1 :])]


def split(context: ShapeContext) -> list[Shape]:
    shape, count = context.shape(), len(context.node.outputs)
    axis = context.integer("axis", 0) % len(shape)
    lengths = context.integers("split", 1)
    if lengths is None:
        if context.node.version < UNEVEN_FROM and shape[axis] % count:
            raise NoRuleError
        each = -(-shape[axis] // count)
        lengths = (*[each] * (count - 1), shape[axis] - each * (count - 1))
    total = 0
    for length in lengths:
        total = total + length
    if len(lengths) != count or total != shape[axis] or any(length < 0 for length in lengths):
        raise NoRuleError
    return [(*shape[:axis], length, *shape[axis + 1 :]) for length in lengths]


def slice_rule(context: ShapeContext) -> list[Shape]:
    shape = list(context.shape())
    starts, ends = context.integers("starts", 1), context.integers("ends", 2)
    if starts is None or ends is None:
        raise NoRuleError
    axes, steps = context.integers("axes", 3), context.integers("steps", 4)
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = (1,) * len(starts) if steps is None else steps
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            raise NoRuleError
        place = axis % len(shape)
        first, last = (_clamped(edge, shape[place]) for edge in (start, end))
        span = 0 if last <= first else last - first
        shape[place] = span if step == 1 else -(-span // step)
    return [tuple(shape)]


def _clamped(edge: int, length: int) -> int:
    """Clamp an edge of a slice with a positive step to the axis."""
    edge = edge + length if edge < 0 else edge
    if edge < 0:
        return 0
    return min(edge, length)


def expand(context: ShapeContext) -> list[Shape]:
    wanted = context.integers("shape", 1)
    if wanted is None:
        raise NoRuleError
    return [broadcast(context.shape(), wanted)]


def filled(context: ShapeContext) -> list[Shape]:
    wanted = context.integers("shape", 0)
    if wanted is None:
        raise NoRuleError
    return [wanted]


def reduced(context: ShapeContext) -> list[Shape]:
    shape, axes = context.shape(), context.integers("axes", 1)
    if not axes and context.integer("noop_with_empty_axes", 0):
        return [shape]
    gone = {axis % len(shape) for axis in axes or range(len(shape))}
    if context.integer("keepdims", 1):
        return [tuple(1 if axis in gone else length for axis, length in enumerate(shape))]
    return [tuple(length for axis, length in enumerate(shape) if axis not in gone)]


def range_rule(context: ShapeContext) -> list[Shape]:
    start, limit, delta = (context.elements[index] for index in range(3))
    if start is None or limit is None or delta is None or delta[0] != 1:
        raise NoRuleError
    return [(limit[0] - start[0] if limit[0] > start[0] else 0,)]


def shape_rule(context: ShapeContext) -> list[Shape]:
    start, end = context.integer("start", 0), context.integer("end", len(context.shape()))
    return [(len(context.shape()[start:end]),)]


def dynamic_quantize(context: ShapeContext) -> list[Shape]:
    return [context.shape(), (), ()]


def tile(context: ShapeContext) -> list[Shape]:
    repeats = context.integers("", 1)
    if repeats is None:
        raise NoRuleError
    return [tuple(length * n for length, n in zip(context.shape(), repeats, strict=True))]


def pad(context: ShapeContext) -> list[Shape]:
    shape, pads, axes = context.shape(), context.integers("pads", 1), context.integers("axes", 3)
    if pads is None:
        raise NoRuleError
    places = range(len(shape)) if axes is None else [axis % len(shape) for axis in axes]
    found = list(shape)
    for index, place in enumerate(places):
        found[place] = found[place] + (pads[index] + pads[len(places) + index])
    return [tuple(found)]


def one_hot(context: ShapeContext) -> list[Shape]:
    depth, shape = context.elements[1], context.shape()
    if depth is None:
        raise NoRuleError
    axis = context.integer("axis", -1) % (len(shape) + 1)
    return [(*shape[:axis], depth[0], *shape[axis:])]


def size(_: ShapeContext) -> list[Shape]:
    return [()]
