"""Primitives that read or write positions given by arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tightship.frontend.jax.call import Call
from tightship.frontend.jax.slices import Start, read_window, starts_of, write_window
from tightship.frontend.writer import Operand
from tightship.graph import DType


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Dimension numbers of a gather or scatter.

    Attributes:
        axes: Axes of the array that a position refers to, in order.
        batch: Batch axes of the array.
        places: Batch axes of the indices, which correspond to `batch`.
        gone: Axes of the array that windows lack.
        windows: Axes of the result or update that belong to windows.
    """

    axes: tuple[int, ...]
    batch: tuple[int, ...]
    places: tuple[int, ...]
    gone: tuple[int, ...]
    windows: tuple[int, ...]


def gathered(call: Call) -> Operand:
    """Translate a gather of rows, elements or one window."""
    given = call["dimension_numbers"]
    at = _Numbers(
        _whole(given.start_index_map),
        _whole(given.operand_batching_dims),
        _whole(given.start_indices_batching_dims),
        _whole(given.collapsed_slice_dims),
        _whole(given.offset_dims),
    )
    operand, indices = call.operands
    sizes = _whole(call["slice_sizes"])
    if indices.rank == 1 and not at.batch:
        found = read_window(call, operand, _starts(call, at, operand, indices), sizes)
        return call.reshaped(found, call.shape)
    _check_windows(call, operand, at, sizes)
    if at.batch:
        return _elements(call, at)
    kept = [axis for axis in range(operand.rank) if axis not in at.axes]
    count = indices.rank - 1
    if len(at.axes) == 1:
        (axis,) = at.axes
        lines = call.reshaped(indices, indices.shape[:-1])
        shape = (*operand.shape[:axis], *lines.shape, *operand.shape[axis + 1 :])
        found = call.add("Gather", (operand.dtype, shape), operand, lines, axis=axis)
    else:
        axis = 0
        first = call.permuted(operand, (*at.axes, *kept))
        shape = (*indices.shape[:-1], *(operand.shape[each] for each in kept))
        whole = call.cast(indices, DType.INT64)
        found = call.add("GatherND", (operand.dtype, shape), first, whole)
    shown = Operand("", operand.dtype, call.shape)
    order = _order(at, operand, shown, (axis, count))
    return call.reshaped(call.permuted(found, order), call.shape)


def scattered(reduction: str, call: Call) -> Operand:
    """Translate a scatter of rows, elements or one window."""
    given = call["dimension_numbers"]
    at = _Numbers(
        _whole(given.scatter_dims_to_operand_dims),
        _whole(given.operand_batching_dims),
        _whole(given.scatter_indices_batching_dims),
        _whole(given.inserted_window_dims),
        _whole(given.update_window_dims),
    )
    operand, indices, updates = call.operands
    sizes = _window_sizes(operand, at, updates)
    is_row = call.known(indices) is None and _are_rows(operand, at, sizes)
    if indices.rank == 1 and not at.batch and not is_row and reduction in ("none", "add"):
        window = call.reshaped(updates, sizes)
        starts = _starts(call, at, operand, indices)
        return write_window(call, operand, window, starts, is_added=reduction == "add")
    _check_windows(call, operand, at, sizes)
    if at.batch:
        return _put_elements(call, at, reduction)
    kept = [axis for axis in range(operand.rank) if axis not in at.axes]
    count = indices.rank - 1
    axis = at.axes[0] if len(at.axes) == 1 and reduction == "add" else 0
    order = _order(at, operand, updates, (axis, count))
    lengths = [updates.shape[place] for place in _places(at, operand, updates)]
    rows = call.permuted(call.reshaped(updates, lengths), _inverse(order))
    if reduction == "add" and len(at.axes) == 1:
        lines = call.reshaped(indices, indices.shape[:-1])
        return _added(call, "GatherGrad", (rows, lines), axis)
    first = (*at.axes, *kept)
    target, whole = call.permuted(operand, first), call.cast(indices, DType.INT64)
    kind = (target.dtype, target.shape)
    found = call.add("ScatterND", kind, target, whole, rows, reduction=reduction)
    return call.permuted(found, _inverse(first))


def _added(call: Call, operator: str, values: tuple[Operand, Operand], axis: int) -> Operand:
    """Write a sum of values at positions, added to the array unless that is zero."""
    operand = call.operand
    more = call.only(call.own(operator, values, {"axis": axis, "shape": operand.shape}))
    return more if call.is_zero(operand) else call.result("Add", operand, more)


def _elements(call: Call, at: _Numbers) -> Operand:
    """Write a gather of one element along an axis for each index, aligned on all other axes."""
    operand, indices = call.operands
    axis, lines, order = _lines(call, at, operand, indices)
    kind = (operand.dtype, lines.shape)
    found = call.add("GatherElements", kind, operand, lines, axis=axis)
    shape = [indices.shape[place] for place in range(indices.rank - 1)]
    return call.reshaped(_unlined(call, found, order, shape), call.shape)


def _put_elements(call: Call, at: _Numbers, reduction: str) -> Operand:
    operand, indices, updates = call.operands
    axis, lines, order = _lines(call, at, operand, indices)
    places = call.reshaped(updates, indices.shape[:-1])
    values = call.reshaped(call.permuted(places, order), lines.shape)
    if reduction == "add":
        return _added(call, "GatherElementsGrad", (values, lines), axis)
    return call.result("ScatterElements", operand, lines, values, axis=axis, reduction=reduction)


def _lines(
    call: Call, at: _Numbers, operand: Operand, indices: Operand
) -> tuple[int, Operand, tuple[int, ...]]:
    """Return the axis, indices with the array's axes, and the permutation of their own."""
    others = [place for place in range(indices.rank - 1) if place not in at.places]
    if len(at.axes) != 1 or len(at.batch) != operand.rank - 1 or len(others) > 1:
        raise call.refuse("reads or writes windows at different positions for each of a batch")
    (axis,) = at.axes
    order: list[int] = []
    for each in range(operand.rank):
        order.extend(others if each == axis else [at.places[at.batch.index(each)]])
    shape = [operand.shape[each] for each in range(operand.rank)]
    shape[axis] = indices.shape[others[0]] if others else 1
    flat = call.permuted(call.reshaped(indices, indices.shape[:-1]), tuple(order))
    return axis, call.reshaped(flat, shape), tuple(order)


def _unlined(call: Call, found: Operand, order: tuple[int, ...], shape: Sequence[int]) -> Operand:
    moved = call.reshaped(found, [shape[place] for place in order])
    return call.permuted(moved, _inverse(order))


def _starts(call: Call, at: _Numbers, operand: Operand, indices: Operand) -> list[Start]:
    """Return the start of a single window on each axis."""
    found: list[Start] = [0] * operand.rank
    for axis, start in zip(at.axes, starts_of(call, indices), strict=True):
        found[axis] = start
    return found


def _window_sizes(operand: Operand, at: _Numbers, updates: Operand) -> tuple[int, ...]:
    """Return the lengths of a window on all axes of the array."""
    given = iter(updates.shape[place] for place in at.windows)
    return tuple(
        1 if axis in at.gone or axis in at.batch else next(given) for axis in range(operand.rank)
    )


def _are_rows(operand: Operand, at: _Numbers, sizes: tuple[int, ...]) -> bool:
    """Whether windows have one position of indexed axes, and all of the others."""
    single = {*at.axes, *at.batch}
    wanted = [1 if axis in single else length for axis, length in enumerate(operand.shape)]
    return list(sizes) == wanted


def _check_windows(call: Call, operand: Operand, at: _Numbers, sizes: tuple[int, ...]) -> None:
    if not _are_rows(operand, at, sizes):
        raise call.refuse(
            f"reads or writes windows of the shape {list(sizes)} of an array of the shape "
            f"{list(operand.shape)}"
        )


def _places(at: _Numbers, operand: Operand, result: Operand) -> list[int]:
    """Return the axes of a result or update, except those of length 1 for an indexed axis."""
    kept = [axis for axis in range(operand.rank) if axis not in (*at.gone, *at.batch)]
    single = [at.windows[place] for place, axis in enumerate(kept) if axis in at.axes]
    return [place for place in range(result.rank) if place not in single]


def _order(
    at: _Numbers, operand: Operand, result: Operand, where: tuple[int, int]
) -> tuple[int, ...]:
    """Map each axis of a result or update to the axis of rows.

    Rows have the array's axes, but those of the indices in place of one, or first; `where` is the
    position and the number of these.
    """
    axis, count = where
    windows = batches = 0
    found = []
    for place in _places(at, operand, result):
        if place in at.windows:
            found.append(windows if windows < axis else windows + count)
            windows += 1
        else:
            found.append(axis + batches)
            batches += 1
    return tuple(found)


def _inverse(order: Sequence[int]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _whole(numbers: Any) -> tuple[int, ...]:  # noqa: ANN401
    return tuple(int(number) for number in numbers)


TABLE: dict[str, Callable[[Call], Operand]] = {
    "gather": gathered,
    "scatter": partial(scattered, "none"),
    "scatter-add": partial(scattered, "add"),
    "scatter-max": partial(scattered, "max"),
    "scatter-min": partial(scattered, "min"),
    "scatter-mul": partial(scattered, "mul"),
}
