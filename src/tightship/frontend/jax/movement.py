"""Primitives that move elements to fixed positions."""

from collections.abc import Callable, Sequence

import numpy as np

from tightship.frontend.jax.call import Call
from tightship.frontend.writer import Operand
from tightship.graph import DType, Fill

INT64_MAX = (1 << 63) - 1


def reshaped(call: Call) -> Operand:
    """Translate a reshape."""
    operand = call.operand
    order = call["dimensions"]
    if order is not None:
        operand = call.permuted(operand, tuple(int(axis) for axis in order))
    return call.reshaped(operand, call.shape)


def viewed(call: Call) -> Operand:
    """Translate removal or insertion of axes of length 1."""
    return call.reshaped(call.operand, call.shape)


def spread(call: Call) -> Operand:
    """Translate the insertion and expansion of axes."""
    operand = call.operand
    constant = call.writer.constants.get(operand.name)
    if constant is not None and not operand.rank:
        return call.writer.constant(call.stem, Fill(np.array(constant.array()), call.shape))
    kept = {int(axis): place for place, axis in enumerate(call["broadcast_dimensions"])}
    lengths = [operand.shape[kept[axis]] if axis in kept else 1 for axis in range(len(call.shape))]
    narrow = call.reshaped(operand, lengths)
    if narrow.shape == call.shape:
        return narrow
    return call.result("Expand", narrow, call.integers(*call.shape))


def transposed(call: Call) -> Operand:
    """Translate a permutation of axes."""
    return call.permuted(call.operand, tuple(int(axis) for axis in call["permutation"]))


def sliced(call: Call) -> Operand:
    """Translate a slice of all axes."""
    operand = call.operand
    steps = call["strides"] or (1,) * operand.rank
    ranges = zip(call["start_indices"], call["limit_indices"], steps, strict=True)
    return cut(call, operand, [tuple(int(number) for number in each) for each in ranges])


def cut(call: Call, operand: Operand, ranges: Sequence[tuple[int, ...]]) -> Operand:
    """Write a slice by start, stop and step of each axis."""
    chosen = [
        (start, stop, axis, step)
        for axis, (start, stop, step) in enumerate(ranges)
        if (start, stop, step) != (0, operand.shape[axis], 1)
    ]
    if not chosen:
        return operand
    shape = tuple(len(range(*each)) for each in ranges)
    numbers = [call.integers(*row) for row in zip(*chosen, strict=True)]
    return call.add("Slice", (operand.dtype, shape), operand, *numbers)


def backwards(call: Call) -> Operand:
    """Translate a reversal of axes."""
    axes = [int(axis) for axis in call["dimensions"]]
    if not axes:
        return call.operand
    ones = [-1] * len(axes)
    ends = call.integers(*[-INT64_MAX] * len(axes))
    return call.result(
        "Slice", call.operand, call.integers(*ones), ends, call.integers(*axes),
        call.integers(*ones),
    )  # fmt: skip


def joined(call: Call) -> Operand:
    """Translate a concatenation."""
    parts = [each for each in call.operands if 0 not in each.shape]
    if len(parts) < 2:
        return parts[0] if parts else call.operand
    return call.result("Concat", *parts, axis=int(call["dimension"]))


def stacked(call: Call) -> Operand:
    """Translate a concatenation along a new axis."""
    axis = int(call["axis"])
    shape = (*call.shape[:axis], 1, *call.shape[axis + 1 :])
    rows = [call.reshaped(each, shape) for each in call.operands]
    return rows[0] if len(rows) == 1 else call.result("Concat", *rows, axis=axis)


def unstacked(call: Call) -> tuple[Operand, ...]:
    """Translate `unstack`: each position of an axis, which is removed."""
    operand, axis = call.operand, int(call["axis"])
    kind = (operand.dtype, (*operand.shape[:axis], *operand.shape[axis + 1 :]))
    places = [call.scalar(place, DType.INT64) for place in range(operand.shape[axis])]
    return tuple(call.add("Gather", kind, operand, place, axis=axis) for place in places)


def tiled(call: Call) -> Operand:
    """Translate a repetition of the whole array along each axis."""
    return call.result("Tile", call.operand, call.integers(*(int(n) for n in call["reps"])))


def parts(call: Call) -> tuple[Operand, ...]:
    """Translate a split along an axis."""
    kinds = [kind for kind in call.types if kind is not None]
    if len(kinds) == 1:
        return (call.operand,)
    lengths = call.integers(*(int(size) for size in call["sizes"]))
    outputs = [call.writer.define(call.stem, *kind) for kind in kinds]
    attributes = {"axis": int(call["axis"])}
    call.writer.node("Split", (call.operand, lengths), outputs, attributes)
    return tuple(outputs)


def padded(call: Call) -> Operand:
    """Translate padding around and between elements; negative amounts cut elements off."""
    operand, element = call.operands
    config = [tuple(int(number) for number in each) for each in call["padding_config"]]
    between = [inner for _, _, inner in config]
    if any(between):
        operand = apart(call, operand, between, element)
    before, after = ([each[side] for each in config] for side in (0, 1))
    if not any(before) and not any(after):
        return operand
    pads = call.integers(*before, *after)
    return call.result("Pad", operand, pads, element, mode="constant")


def apart(
    call: Call, operand: Operand, between: Sequence[int], element: Operand | None = None
) -> Operand:
    """Insert elements between neighbours of each axis; zeros by default."""
    zero = element or call.scalar(0, operand.dtype)
    shape = operand.shape
    open_ = tuple(number for length in shape for number in (length, 1))
    pads = [number for inner in between for number in (0, inner)]
    wide = tuple(
        number for n, inner in zip(shape, between, strict=True) for number in (n, inner + 1)
    )
    spaced = call.add(
        "Pad", (operand.dtype, wide), call.reshaped(operand, open_),
        call.integers(*[0] * len(wide), *pads), zero, mode="constant",
    )  # fmt: skip
    flat = call.reshaped(spaced, [n * (k + 1) for n, k in zip(shape, between, strict=True)])
    ends = [(0, length - k, 1) for length, k in zip(flat.shape, between, strict=True)]
    return cut(call, flat, ends)


TABLE: dict[str, Callable[[Call], Operand | tuple[Operand, ...]]] = {
    "broadcast_in_dim": spread,
    "concatenate": joined,
    "expand_dims": viewed,
    "pad": padded,
    "reshape": reshaped,
    "rev": backwards,
    "slice": sliced,
    "split": parts,
    "squeeze": viewed,
    "stack": stacked,
    "tile": tiled,
    "transpose": transposed,
    "unstack": unstacked,
}
