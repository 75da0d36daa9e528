"""Operators that read or write positions which tensors name."""

from collections.abc import Callable
from functools import partial

from tightship.frontend.torch.refusal import refused
from tightship.frontend.torch.writer import Call, Operand, axis_of
from tightship.graph import DType


def embedded(call: Call) -> Operand:
    """A row of the table for each index."""
    return call.result("Gather", call["weight"], call["indices"], axis=0)


def positions(call: Call) -> Operand:
    """Positions of one axis."""
    operand: Operand = call["self"]
    return call.result("Gather", operand, call["index"], axis=axis_of(call["dim"], operand.rank))


def gathered(call: Call) -> Operand:
    """One element along an axis for each index."""
    operand: Operand = call["self"]
    if not operand.rank:
        return call.reshaped(operand, call.shape)
    axis = axis_of(call["dim"], operand.rank)
    return call.result("GatherElements", operand, call["index"], axis=axis)


def scattered(reduction: str, call: Call) -> Operand:
    """One element along an axis written for each index."""
    operand: Operand = call["self"]
    index: Operand = call["index"]
    source = call.arguments.get("src")
    if source is None:
        element = call.scalar(call["value"], call.dtype)
        source = call.add("Expand", (call.dtype, index.shape), element, call.integers(*index.shape))
    if source.shape != index.shape:
        starts, stops = call.integers(*[0] * index.rank), call.integers(*index.shape)
        source = call.add("Slice", (source.dtype, index.shape), source, starts, stops)
    axis = axis_of(call["dim"], operand.rank)
    return call.result("ScatterElements", operand, index, source, axis=axis, reduction=reduction)


def indexed(call: Call) -> Operand:
    """Positions that tensors give for neighbouring axes, broadcast against each other."""
    operand: Operand = call["self"]
    axis, indices = _neighbours(call)
    if len(indices) == 1:
        return call.result("Gather", operand, indices[0], axis=axis)
    if axis:
        raise refused(call.node, "indexes several axes, and not the first")
    return call.result("GatherND", operand, _stacked(call, indices))


def put(call: Call) -> Operand:
    """Elements at positions that tensors give for the first axes replaced, or added to."""
    operand: Operand = call["self"]
    axis, indices = _neighbours(call)
    if axis:
        raise refused(call.node, "writes positions of an axis that is not the first")
    places = _stacked(call, indices)
    shape = (*places.shape[:-1], *operand.shape[len(indices) :])
    values = call.cast(call["values"], call.dtype)
    if values.shape != shape:
        values = call.add("Expand", (call.dtype, shape), values, call.integers(*shape))
    reduction = "add" if call["accumulate"] else "none"
    return call.result("ScatterND", operand, places, values, reduction=reduction)


def _neighbours(call: Call) -> tuple[int, list[Operand]]:
    """The first axis that is indexed, and its indices and those of the axes after it."""
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
        raise refused(call.node, "indexes axes that are not neighbours")
    operand: Operand = call["self"]
    if any(index.dtype not in (DType.INT32, DType.INT64) for index in indices):
        indices = [call.cast(index, DType.INT64) for index in indices]
    assert axis + len(indices) <= operand.rank, call.node
    return axis, indices


def _stacked(call: Call, indices: list[Operand]) -> Operand:
    """Indices of several axes as one tensor, a row of them for each position."""
    rank = max(index.rank for index in indices)
    padded = [(*[1] * (rank - index.rank), *index.shape) for index in indices]
    shape = tuple(max(lengths) if 0 not in lengths else 0 for lengths in zip(*padded, strict=True))
    columns = []
    for each in indices:
        index = call.cast(each, DType.INT64)
        if index.shape != shape:
            index = call.add("Expand", (DType.INT64, shape), index, call.integers(*shape))
        columns.append(call.reshaped(index, (*shape, 1)))
    if len(columns) == 1:
        return columns[0]
    return call.add("Concat", (DType.INT64, (*shape, len(columns))), *columns, axis=-1)


TABLE: dict[str, Callable[[Call], Operand]] = {
    "embedding.default": embedded,
    "gather.default": gathered,
    "index.Tensor": indexed,
    "index_put.default": put,
    "index_select.default": positions,
    "scatter.src": partial(scattered, "none"),
    "scatter.value": partial(scattered, "none"),
    "scatter_add.default": partial(scattered, "add"),
}
