"""Gradients of operators that move elements: moved back, and summed where repeated."""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.constant import Fill

_Gradients = Iterator[tuple[int, str]]


def reshape(at: GradientContext) -> _Gradients:
    if at.wants(0):
        yield 0, at.reshaped(at.dy, at.shape(at.x()))


def transpose(at: GradientContext) -> _Gradients:
    if at.wants(0):
        perm = at.node.attributes.get("perm")
        rank = len(at.shape(at.x()))
        order = perm if isinstance(perm, tuple) else tuple(reversed(range(rank)))
        yield 0, at.transposed(at.dy, tuple(np.argsort([int(axis) for axis in order]).tolist()))


def expand(at: GradientContext) -> _Gradients:
    if at.wants(0):
        yield 0, at.summed_to(at.dy, at.x())


def tile(at: GradientContext) -> _Gradients:
    if not at.wants(0):
        return
    shape = at.shape(at.x())
    apart = []
    for length, whole in zip(shape, at.shape(at.dy), strict=True):
        apart += [whole // length if length else 1, length]
    tiled = at.reshaped(at.dy, apart)
    yield 0, at.reshaped(at.summed(tiled, range(0, len(apart), 2)), shape)


def concat(at: GradientContext) -> _Gradients:
    """Write an interval of the gradient for each operand; all of them by one Split."""
    axis = at.integer("axis", 0) % len(at.shape(at.dy))
    lengths = [at.shape(name)[axis] for name in at.node.inputs]
    starts = [0, *np.cumsum(lengths).tolist()]
    count = len(lengths)
    if all(map(at.wants, range(count))):
        types = [at.type(name) for name in at.node.inputs]
        sizes = at.tape.integers(lengths)
        parts = at.tape.write("Split", (at.dy, sizes), types, {"axis": axis})
        yield from enumerate(parts)
        return
    for index, (start, stop) in enumerate(pairwise(starts)):
        if at.wants(index):
            yield index, _stretch(at, axis, start, stop)


def _stretch(at: GradientContext, axis: int, start: int, stop: int) -> str:
    shape = list(at.shape(at.dy))
    shape[axis] = stop - start
    limits = [at.tape.integers([number]) for number in (start, stop, axis)]
    return at.op("Slice", at.dy, *limits, shape=shape)


def split(at: GradientContext) -> _Gradients:
    """Join the parts' gradients, with zeros for a part that has none."""
    if not at.wants(0):
        return
    shape = at.shape(at.x())
    parts = [
        gradient or _zeros(at, output)
        for gradient, output in zip(at.gradients, at.node.outputs, strict=True)
        if output
    ]
    axis = at.integer("axis", 0) % len(shape)
    yield 0, at.op("Concat", *parts, shape=shape, attributes={"axis": axis})


def _zeros(at: GradientContext, like: str) -> str:
    dtype, shape = at.type(like)
    return at.tape.hold(f"d({like})", Fill(np.zeros((), dtype.numpy), shape))


def slice_rule(at: GradientContext) -> _Gradients:
    """Pad the gradient if the slice is contiguous; limits must be constants."""
    if not at.wants(0):
        return
    shape = at.shape(at.x())
    starts, ends, axes, steps = _limits(at, len(shape))
    ranges = [
        range(shape[axis])[start:end:step]
        for axis, start, end, step in zip(axes, starts, ends, steps, strict=True)
    ]
    if all(step == 1 for step in steps):
        pads = [0] * (2 * len(shape))
        for axis, each in zip(axes, ranges, strict=True):
            pads[axis] = each.start
            pads[axis + len(shape)] = shape[axis] - each.start - len(each)
        yield 0, at.op("Pad", at.dy, at.tape.integers(pads), shape=shape)
        return
    numbers = [at.tape.integers(row) for row in (starts, ends, axes, steps)]
    yield 0, at.own("SliceGrad", at.dy, *numbers, shape=shape)[0]


def _limits(at: GradientContext, rank: int) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return starts, ends, axes and steps of a Slice, one for each axis that it slices."""
    rows: list[list[int] | None] = []
    for index, name in enumerate(("starts", "ends", "axes", "steps"), start=1):
        given = at.node.attributes.get(name)
        array = np.array(given) if isinstance(given, tuple) else at.parameter(index, name)
        rows.append(None if array is None else array.reshape(-1).tolist())
    starts, ends, axes, steps = rows
    assert starts is not None
    assert ends is not None
    chosen = [axis % rank for axis in (range(len(starts)) if axes is None else axes)]
    return starts, ends, chosen, [1] * len(starts) if steps is None else steps


def pad(at: GradientContext) -> _Gradients:
    """Slice the padded interval; other modes than constant repeat elements."""
    if not at.wants(0):
        return
    mode = at.node.attributes.get("mode", "constant")
    if mode not in ("constant", b"constant"):
        raise at.refusal(f"is known for constant padding only, not for mode {mode!r}")
    given = at.node.attributes.get("pads")
    array = np.array(given) if isinstance(given, tuple) else at.parameter(1, "pads")
    assert array is not None
    pads = array.reshape(-1).tolist()
    shape = at.shape(at.x())
    chosen = at.parameter(3, "axes")
    axes = range(len(shape)) if chosen is None else (chosen.reshape(-1) % len(shape)).tolist()
    count = len(pads) // 2
    before, after = [0] * len(shape), [0] * len(shape)
    for place, axis in enumerate(axes):
        before[axis], after[axis] = -pads[place], -pads[place + count]
    turned = at.tape.integers([*before, *after])
    yield 0, at.op("Pad", at.dy, turned, shape=shape)


def gather(at: GradientContext) -> _Gradients:
    """Read the indices; elements gathered more than once have the sum."""
    if at.wants(0):
        shape = at.shape(at.x(0))
        operator = f"{at.node.operator}Grad"
        yield 0, at.own(operator, at.dy, at.x(1), shape=shape)[0]


def triangle(at: GradientContext) -> _Gradients:
    if at.wants(0):
        shape = at.shape(at.dy)
        yield (
            0,
            at.op("Trilu", at.dy, *at.node.inputs[1:], shape=shape, attributes=at.node.attributes),
        )


def depth_to_space(at: GradientContext) -> _Gradients:
    """Turn each block of positions back into channels, as the mode has them."""
    if not at.wants(0):
        return
    shape, size = at.shape(at.x()), at.integer("blocksize", 1)
    batch, channels, rows, columns = shape
    apart = at.reshaped(at.dy, (batch, channels // size**2, rows, size, columns, size))
    is_inner = at.node.attributes.get("mode", "DCR") in ("CRD", b"CRD")
    order = (0, 1, 3, 5, 2, 4) if is_inner else (0, 3, 5, 1, 2, 4)
    yield 0, at.reshaped(at.transposed(apart, order), shape)


def space_to_depth(at: GradientContext) -> _Gradients:
    """Turn channels back into blocks of positions."""
    if at.wants(0):
        shape, size = at.shape(at.x()), at.integer("blocksize", 1)
        batch, channels, rows, columns = shape
        places, order = (rows // size, columns // size), (0, 3, 4, 1, 5, 2)
        apart = (batch, size, size, channels, *places)
        if at.node.attributes.get("mode", "DCR") in ("CRD", b"CRD"):
            apart, order = (batch, channels, size, size, *places), (0, 1, 4, 2, 5, 3)
        yield 0, at.reshaped(at.transposed(at.reshaped(at.dy, apart), order), shape)
