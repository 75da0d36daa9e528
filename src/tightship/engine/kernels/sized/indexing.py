"""Operators that choose elements by index or condition, on arrays of any shape."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.gather import REDUCTIONS
from tightship.engine.kernels.kernel import Array
from tightship.engine.kernels.kernel_context import axis_of, require
from tightship.engine.kernels.reference import MakeRun, ReferenceRun
from tightship.engine.kernels.sized.axes import axis_attribute, operand
from tightship.graph import Node


def gather(node: Node, _: MakeRun) -> ReferenceRun:
    axis = node.integer("axis", 0)
    return lambda operands: [operands[0].take(operands[1], axis)]


def gather_elements(node: Node, _: MakeRun) -> ReferenceRun:
    axis = node.integer("axis", 0)

    def run(operands: Sequence[Any]) -> list[Any]:
        data, index = operands
        rows = _rows(data, index, axis)
        return [data[_grid(index, axis)] if rows is None else data.take(rows, axis)]

    return run


def gather_tuples(node: Node, _: MakeRun) -> ReferenceRun:
    batch = node.integer("batch_dims", 0)

    def run(operands: Sequence[Any]) -> list[Any]:
        data, index = operands
        grid = np.ogrid[tuple(map(slice, data.shape[:batch]))] if batch else ()
        inner = index.ndim - 1 - batch
        outer = [axis.reshape(axis.shape + (1,) * inner) for axis in grid]
        return [data[(*outer, *np.moveaxis(index, -1, 0))]]

    return run


def scatter_elements(node: Node, _: MakeRun) -> ReferenceRun:
    axis, reduction = node.integer("axis", 0), _reduction(node)

    def run(operands: Sequence[Any]) -> list[Any]:
        data, index, updates = operands
        rows = _rows(data, index, axis)
        if rows is None or index.shape != updates.shape:
            return [_scattered(data, _grid(index, axis), updates, reduction)]
        outer = (slice(None),) * axis_of(axis, data.ndim)
        return [_scattered(data, (*outer, rows), updates, reduction)]

    return run


def scatter_tuples(node: Node, _: MakeRun) -> ReferenceRun:
    reduction = _reduction(node)

    def run(operands: Sequence[Any]) -> list[Any]:
        data, index, updates = operands
        return [_scattered(data, tuple(np.moveaxis(index, -1, 0)), updates, reduction)]

    return run


def _grid(index: Array, axis: int) -> tuple[Array, ...]:
    """Return the position of each index, with the index itself along the axis."""
    grid = list(np.ogrid[tuple(map(slice, index.shape))])
    grid[axis_of(axis, index.ndim)] = index
    return tuple(grid)


def _rows(data: Array, index: Array, axis: int) -> Array | None:
    """Return the indices of whole rows along the axis, as those of an expanded vector; else None.

    Detectors expand the places of regions to elements; rows are moved in a tenth of the time.
    """
    place = axis_of(axis, data.ndim)
    if index.size == 0 or index.shape[:place] != data.shape[:place]:
        return None
    if index.shape[place + 1 :] != data.shape[place + 1 :]:
        return None
    first = index[tuple(slice(None if at == place else 1) for at in range(index.ndim))]
    strides = zip(index.strides, index.shape, strict=True)
    is_expanded = all(s == 0 or n == 1 for at, (s, n) in enumerate(strides) if at != place)
    return first.reshape(-1) if is_expanded or (index == first).all() else None


def reduction_name(node: Node) -> str:
    """Return how a scatter combines an update with an element; `none` if it replaces it."""
    name = node.attributes.get("reduction", "none")
    return name.decode() if isinstance(name, bytes) else str(name)


def _reduction(node: Node) -> np.ufunc | None:
    name = reduction_name(node)
    return None if name == "none" else REDUCTIONS[name]


def _scattered(
    data: Array, places: tuple[Any, ...], updates: Array, reduction: np.ufunc | None
) -> Array:
    out = data.copy()
    if reduction is None:
        out[places] = updates
    else:
        reduction.at(out, places, updates)
    return out


def non_zero(_node: Node, _: MakeRun) -> ReferenceRun:
    def run(operands: Sequence[Any]) -> list[Any]:
        require(operands[0].ndim > 0)
        return [np.array(operands[0].nonzero(), np.int64)]

    return run


def compress(node: Node, _: MakeRun) -> ReferenceRun:
    axis = axis_attribute(node)
    return lambda operands: [np.compress(operands[1], operands[0], axis)]


def unique(node: Node, _: MakeRun) -> ReferenceRun:
    """Find unique elements, or slices along an axis: sorted, or by their first places."""
    axis, is_sorted = axis_attribute(node), node.integer("sorted", 1)

    def run(operands: Sequence[Any]) -> list[Any]:
        found, first, inverse, counts = np.unique(
            operands[0], return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(-1)
        if not is_sorted:
            order = np.argsort(first)
            place = np.empty_like(order)
            place[order] = np.arange(order.size)
            found = found.take(order, 0 if axis is None else axis)
            first, inverse, counts = first[order], place[inverse], counts[order]
        results = (found, *(each.astype(np.int64, copy=False) for each in (first, inverse, counts)))
        return [
            result if name else None for name, result in zip(node.outputs, results, strict=False)
        ]

    return run


def top_k(node: Node, _: MakeRun) -> ReferenceRun:
    """Return the best elements of each line, equal ones by index; a NaN is the largest."""
    axis, is_largest = node.integer("axis", -1), bool(node.integer("largest", 1))

    def run(operands: Sequence[Any]) -> list[Any]:
        x, given = operands[0], operand(operands, 1)
        count = node.integer("k", 0) if given is None else int(given.reshape(()))
        place = axis_of(axis, x.ndim)
        length = x.shape[place]
        require(0 <= count <= length)
        line = np.flip(x, place) if is_largest else x
        order = np.argsort(line, place, kind="stable")
        if is_largest:
            order = length - 1 - np.flip(order, place)
        order = order[(slice(None),) * place + (slice(count),)]
        results = np.take_along_axis(x, order, place), np.ascontiguousarray(order)
        return [
            result if name else None for name, result in zip(node.outputs, results, strict=False)
        ]

    return run
