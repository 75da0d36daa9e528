"""Operators that read or write positions given by tensors."""

import math
from collections.abc import Callable
from functools import partial

from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.writer import Operand, axis_of
from tightship.graph import DType, Fill
from tightship.graph.length import same_for_all


def embedded(call: Call) -> Operand:
    """Translate an embedding: a row of the table for each index."""
    return call.result("Gather", call["weight"], call["indices"], axis=0)


def positions(call: Call) -> Operand:
    """Translate a selection of positions along one axis."""
    operand: Operand = call["self"]
    return call.result("Gather", operand, call["index"], axis=axis_of(call["dim"], operand.rank))


def gathered(call: Call) -> Operand:
    """Translate a gather of one element along an axis for each index."""
    operand: Operand = call["self"]
    if not operand.rank:
        return call.reshaped(operand, call.shape)
    axis = axis_of(call["dim"], operand.rank)
    return call.result("GatherElements", operand, call["index"], axis=axis)


def scattered(reduction: str, call: Call) -> Operand:
    """Translate a scatter of one element along an axis for each index."""
    operand: Operand = call["self"]
    index: Operand = call["index"]
    source = call.arguments.get("src")
    if source is None:
        element = call.scalar(call["value"], call.dtype)
        source = call.add("Expand", (call.dtype, index.shape), element, call.integers(*index.shape))
    if not same_for_all(source.shape, index.shape):
        starts, stops = call.integers(*[0] * index.rank), call.integers(*index.shape)
        source = call.add("Slice", (source.dtype, index.shape), source, starts, stops)
    axis = axis_of(call["dim"], operand.rank)
    return call.result("ScatterElements", operand, index, source, axis=axis, reduction=reduction)


def indexed(call: Call) -> Operand:
    """Translate indexing of adjacent axes by tensors, broadcast against each other."""
    operand: Operand = call["self"]
    axis, indices = _neighbours(call)
    if _is_grid(indices):
        for place, index in enumerate(indices):
            line = _line(call, index, len(indices))
            shape = (
                *operand.shape[: axis + place],
                *line.shape,
                *operand.shape[axis + place + 1 :],
            )
            operand = call.add("Gather", (call.dtype, shape), operand, line, axis=axis + place)
        return operand
    if axis:
        raise refused(call.node, "indexes several axes that do not begin with the first")
    return call.result("GatherND", operand, _stacked(call, indices))


def put(call: Call) -> Operand:
    """Translate replacement of, or addition to, elements at indexes of the first axes."""
    operand: Operand = call["self"]
    if (masked := _masked(call)) is not None:
        return masked
    axis, indices = _neighbours(call)
    if axis:
        raise refused(call.node, "writes positions of an axis that is not the first")
    places = _stacked(call, indices)
    reduction = "add" if call["accumulate"] else "none"
    values = _values(call, (*places.shape[:-1], *operand.shape[len(indices) :]))
    return call.result("ScatterND", operand, places, values, reduction=reduction)


def _masked(call: Call) -> Operand | None:
    """Translate a mask whose elements get the same value; None for other indexes."""
    operand: Operand = call["self"]
    values: Operand = call["values"]
    mask: Operand | None
    mask, *rest = call["indices"]
    if mask is None or mask.dtype is not DType.BOOL or any(each is not None for each in rest):
        return None
    behind = operand.rank - mask.rank
    if call["accumulate"] or (values.rank > behind and values.shape != (1,)):
        return None
    condition = call.reshaped(mask, (*mask.shape, *(1,) * behind))
    return call.result("Where", condition, call.cast(values, call.dtype), operand)


def added(call: Call) -> Operand:
    """Translate like `put`; a grid of indexes is added one axis after another."""
    operand: Operand = call["self"]
    if not call["accumulate"]:
        return put(call)
    axis, indices = _neighbours(call)
    if not _is_grid(indices):
        return put(call)
    picked = [length for index in indices for length in _line_shape(index, len(indices))]
    values = _values(call, (*operand.shape[:axis], *picked, *operand.shape[axis + len(indices) :]))
    for place in reversed(range(axis, axis + len(indices))):
        line = _line(call, indices[place - axis], len(indices))
        kept = values.shape[:place] + operand.shape[place:]
        (summed,) = call.own("GatherGrad", (values, line), {"axis": place, "shape": kept})
        assert summed is not None
        values = summed
    start = call.writer.constants.get(operand.name)
    if isinstance(start, Fill) and not start.value:
        return values
    return call.result("Add", operand, values)


def _values(call: Call, shape: tuple[int, ...]) -> Operand:
    values = call.cast(call["values"], call.dtype)
    if same_for_all(values.shape, shape):
        return values
    return call.add("Expand", (call.dtype, shape), values, call.integers(*shape))


def _is_grid(indices: list[Operand]) -> bool:
    """Whether each index is along an axis of its own, so that all combinations are meant."""
    count = len(indices)
    return count == 1 or all(
        index.rank <= count
        and math.prod(index.shape) == ((1,) * (count - index.rank) + index.shape)[place]
        for place, index in enumerate(indices)
    )


def _line(call: Call, index: Operand, count: int) -> Operand:
    return call.reshaped(index, _line_shape(index, count))


def _line_shape(index: Operand, count: int) -> tuple[int, ...]:
    return index.shape if count == 1 else (math.prod(index.shape),)


def _neighbours(call: Call) -> tuple[int, list[Operand]]:
    """Return the first indexed axis, and the indexes of it and the axes after it."""
    given: list[Operand | None] = list(call["indices"])
    axis = next(position for position, index in enumerate(given) if index is not None)
    indices = [index for index in given[axis:] if index is not None]
    if any(index.dtype is DType.BOOL for index in indices):
        raise refused(
            call.node,
            "picks elements by a mask, so that its shape depends on data",
            "use `torch.where` with three operands, whose shape is fixed",
        )
    if None in given[axis : axis + len(indices)]:
        raise refused(call.node, "indexes axes that are not adjacent")
    operand: Operand = call["self"]
    if any(index.dtype not in (DType.INT32, DType.INT64) for index in indices):
        indices = [call.cast(index, DType.INT64) for index in indices]
    assert axis + len(indices) <= operand.rank, call.node
    return axis, indices


def _stacked(call: Call, indices: list[Operand]) -> Operand:
    """Stack indexes of several axes into rows, one for each position."""
    rank = max(index.rank for index in indices)
    padded = [(*[1] * (rank - index.rank), *index.shape) for index in indices]
    shape = tuple(max(lengths) if 0 not in lengths else 0 for lengths in zip(*padded, strict=True))
    columns = []
    for each in indices:
        index = call.cast(each, DType.INT64)
        if not same_for_all(index.shape, shape):
            index = call.add("Expand", (DType.INT64, shape), index, call.integers(*shape))
        columns.append(call.reshaped(index, (*shape, 1)))
    if len(columns) == 1:
        return columns[0]
    return call.add("Concat", (DType.INT64, (*shape, len(columns))), *columns, axis=-1)


IN_TRAINING: dict[str, Callable[[Call], Operand]] = {
    "_unsafe_index_put.default": added,
    "index_put.default": added,
}

TABLE: dict[str, Callable[[Call], Operand]] = {
    "embedding.default": embedded,
    "gather.default": gathered,
    "_unsafe_index.Tensor": indexed,
    "index.Tensor": indexed,
    "index_put.default": put,
    "index_select.default": positions,
    "scatter.src": partial(scattered, "none"),
    "scatter.value": partial(scattered, "none"),
    "scatter_add.default": partial(scattered, "add"),
}
