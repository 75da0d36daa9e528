"""Windows of an array at fixed or computed positions."""

from collections.abc import Callable, Sequence

import numpy as np

from tightship.frontend.jax.call import Call
from tightship.frontend.jax.movement import cut
from tightship.frontend.writer import Operand
from tightship.graph import DType

Start = int | Operand


def sliced(call: Call) -> Operand:
    """Translate reading of a window."""
    operand, *given = call.operands
    sizes = tuple(int(size) for size in call["slice_sizes"])
    return read_window(call, operand, [_start(call, each) for each in given], sizes)


def updated(call: Call) -> Operand:
    """Translate replacement of a window."""
    operand, window, *given = call.operands
    starts = [_start(call, each) for each in given]
    return write_window(call, operand, window, starts, is_added=False)


def starts_of(call: Call, indices: Operand) -> list[Start]:
    """Return the elements of a vector, each a number or a scalar operand."""
    known = call.known(indices)
    if known is not None:
        return [int(number) for number in known.reshape(-1)]
    kind = (indices.dtype, ())
    return [
        call.add("Gather", kind, indices, call.scalar(place, DType.INT64), axis=0)
        for place in range(indices.shape[0])
    ]


def _start(call: Call, operand: Operand) -> Start:
    known = call.known(operand)
    return operand if known is None else int(known)


def read_window(
    call: Call, operand: Operand, starts: Sequence[Start], sizes: Sequence[int]
) -> Operand:
    """Read a window, clamped to lie within the array."""
    ranges = []
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        length = operand.shape[axis]
        low = 0 if isinstance(start, Operand) else min(max(start, 0), length - size)
        ranges.append((low, length if isinstance(start, Operand) else low + size, 1))
    found = cut(call, operand, ranges)
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        if isinstance(start, Operand):
            places = _places(call, start, size, operand.shape[axis])
            shape = (*found.shape[:axis], size, *found.shape[axis + 1 :])
            found = call.add("Gather", (operand.dtype, shape), found, places, axis=axis)
    return found


def write_window(
    call: Call, operand: Operand, window: Operand, starts: Sequence[Start], *, is_added: bool
) -> Operand:
    """Replace, or add to, a window clamped to lie within the array."""
    open_ = [axis for axis, start in enumerate(starts) if isinstance(start, Operand)]
    narrow = [axis for axis in range(operand.rank) if window.shape[axis] != operand.shape[axis]]
    open_ = [axis for axis in open_ if axis in narrow]
    if open_ and len(narrow) > 1:
        raise call.refuse(f"writes at computed positions of {len(narrow)} axes; one is supported")
    if open_:
        start = starts[open_[0]]
        assert isinstance(start, Operand)
        return _at_computed(call, operand, window, (open_[0], start), is_added=is_added)
    lows = [
        min(max(start, 0), n - size) if isinstance(start, int) else 0
        for start, n, size in zip(starts, operand.shape, window.shape, strict=True)
    ]
    highs = [n - size - low for low, n, size in zip(lows, operand.shape, window.shape, strict=True)]
    if not narrow:
        return call.result("Add", operand, window) if is_added else window
    if is_added or len(narrow) > 1:
        wide = call.result("Pad", window, call.integers(*lows, *highs))
        if is_added:
            return wide if call.is_zero(operand) else call.result("Add", operand, wide)
        inside = np.zeros(operand.shape, np.bool_)
        inside[tuple(slice(low, low + n) for low, n in zip(lows, window.shape, strict=True))] = True
        return call.result("Where", call.held(inside), wide, operand)
    (axis,) = narrow
    length = operand.shape[axis]
    ends = [(0, lows[axis]), (length - highs[axis], length)]
    before, after = (
        cut(call, operand, [(*end, 1) if each == axis else (0, n, 1)
                            for each, n in enumerate(operand.shape)])
        for end in ends
    )  # fmt: skip
    parts = [each for each in (before, window, after) if each.shape[axis]]
    return call.result("Concat", *parts, axis=axis)


def _at_computed(
    call: Call, operand: Operand, window: Operand, where: tuple[int, Operand], *, is_added: bool
) -> Operand:
    axis, start = where
    order = (axis, *(each for each in range(operand.rank) if each != axis))
    size = window.shape[axis]
    places = call.cast(_places(call, start, size, operand.shape[axis]), DType.INT64)
    target = call.permuted(operand, order)
    found = call.add(
        "ScatterND", (target.dtype, target.shape), target, call.reshaped(places, (size, 1)),
        call.permuted(window, order), reduction="add" if is_added else "none",
    )  # fmt: skip
    return call.permuted(found, tuple(order.index(each) for each in range(operand.rank)))


def _places(call: Call, start: Operand, size: int, length: int) -> Operand:
    least = call.add("Max", (start.dtype, ()), start, call.scalar(0, start.dtype))
    most = call.scalar(length - size, start.dtype)
    first = call.add("Min", (start.dtype, ()), least, most)
    row = call.held(np.arange(size).astype(start.dtype.numpy))
    return call.add("Add", (start.dtype, (size,)), row, first)


TABLE: dict[str, Callable[[Call], Operand]] = {
    "dynamic_slice": sliced,
    "dynamic_update_slice": updated,
}
