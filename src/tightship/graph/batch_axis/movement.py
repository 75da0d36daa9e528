"""Batch axes of operators that move elements."""

import math

from tightship.graph.batch_axis.step import Rules, Step

UNBOUNDED = 2**31 - 1
"""Ends of slices from here on mean the end of the axis."""


def _transpose(at: Step) -> tuple[int | None, ...]:
    rank = len(at.shape(0))
    order = at.node.attributes.get("perm") or tuple(reversed(range(rank)))
    assert isinstance(order, tuple)
    return (order.index(at.main),)


def _reshape(at: Step) -> tuple[int | None, ...]:
    before, after, axis = at.shape(0), at.result, at.main
    outside = math.prod(before[:axis])
    found = [
        place
        for place, length in enumerate(after)
        if math.prod(after[:place]) == outside and length and length % at.batch == 0
    ]
    if not found:
        at.refuse("divides the elements of a sample among several")
    at.targets[1] = found[0]
    return (found[0],)


def _flatten(at: Step) -> tuple[int | None, ...]:
    axis = at.node.integer("axis", 1) % (len(at.shape(0)) + 1)
    outside = math.prod(at.shape(0)[: at.main])
    if at.main < axis:
        if outside != 1:
            at.refuse("joins the batch with an axis outside it")
        return (0,)
    if math.prod(at.shape(0)[axis : at.main]) != 1:
        at.refuse("joins the batch with an axis outside it")
    return (1,)


def _squeeze(at: Step) -> tuple[int | None, ...]:
    rank = len(at.shape(0))
    given = at.integers(1, "axes")
    if given is None:
        if at.batch == 1:
            at.refuse("removes all axes of length 1, the batch among them; give it axes")
        given = tuple(axis for axis, length in enumerate(at.shape(0)) if length == 1)
    at.apart_from(at.main, given, rank, "removes an axis")
    return (at.main - sum(axis % rank < at.main for axis in given),)


def _unsqueeze(at: Step) -> tuple[int | None, ...]:
    given = at.integers(1, "axes") or ()
    rank = len(at.shape(0)) + len(given)
    added = {axis % rank for axis in given}
    return ([axis for axis in range(rank) if axis not in added][at.main],)


def _concat(at: Step) -> tuple[int | None, ...]:
    rank = len(at.result)
    found = {axis for axis in at.axes if axis is not None}
    if len(found) > 1:
        at.refuse("joins samples that lie along different axes")
    (axis,) = found
    at.apart_from(axis, (at.node.integer("axis"),), rank, "joins values")
    for index, each in enumerate(at.axes):
        if each is None:
            at.repeat(index, axis)
    return (axis,)


def _split(at: Step) -> tuple[int | None, ...]:
    at.apart_from(at.main, (at.node.integer("axis", 0),), len(at.shape(0)), "divides")
    return (at.main,)


def _slice(at: Step) -> tuple[int | None, ...]:
    starts, ends = at.integers(1, "starts") or (), at.integers(2, "ends") or ()
    axes = at.integers(3, "axes") or tuple(range(len(starts)))
    steps = at.integers(4, "steps") or (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if axis % len(at.shape(0)) == at.main and (start, step) != (0, 1):
            at.refuse(f"takes a part of the batch, axis {at.main}")
        if axis % len(at.shape(0)) == at.main and end < UNBOUNDED:
            at.refuse(f"ends at sample {end} of the batch, axis {at.main}")
    return (at.main,)


def _gather(at: Step) -> tuple[int | None, ...]:
    axis = at.node.integer("axis", 0) % len(at.shape(0))
    data, indices = at.axes[0], at.axes[1]
    if data is None:
        assert indices is not None
        return (axis + indices,)
    if indices is not None:
        at.refuse("picks samples by indices that differ between samples")
    at.apart_from(data, (axis,), len(at.shape(0)), "picks")
    return (data if data < axis else data - 1 + len(at.shape(1)),)


def _expand(at: Step) -> tuple[int | None, ...]:
    at.alone(0)
    place = at.main + len(at.result) - len(at.shape(0))
    if at.result[place] != at.shape(0)[at.main]:
        at.refuse("repeats a sample along the batch")
    at.targets[1] = place
    return (place,)


def _tile(at: Step) -> tuple[int | None, ...]:
    if at.result[at.main] != at.shape(0)[at.main]:
        at.refuse("repeats samples along the batch")
    return (at.main,)


def _pad(at: Step) -> tuple[int | None, ...]:
    if at.result[at.main] != at.shape(0)[at.main]:
        at.refuse("adds samples to the batch")
    return (at.main,)


def _resize(at: Step) -> tuple[int | None, ...]:
    at.alone(0)
    if at.result[at.main] != at.shape(0)[at.main]:
        at.refuse("resizes the batch")
    axes = at.node.attributes.get("axes")
    if axes is not None:
        assert isinstance(axes, tuple)
        at.apart_from(at.main, [int(each) for each in axes], len(at.shape(0)), "resizes")
    elif len(at.node.inputs) > 3 and at.node.inputs[3]:
        at.targets[3] = at.main
    return (at.main,)


def _along_axis(at: Step) -> tuple[int | None, ...]:
    axis = (at.integers(1, "axis") or (0,))[0]
    at.apart_from(at.main, (axis,), len(at.shape(0)), "sums")
    return (at.main,)


RULES: Rules = {
    "Concat": _concat,
    "CumSum": _along_axis,
    "Expand": _expand,
    "Flatten": _flatten,
    "Gather": _gather,
    "Pad": _pad,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Upsample": _resize,
}
