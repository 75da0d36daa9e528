"""Reductions, running sums and sorting."""

from collections.abc import Callable, Sequence
from functools import partial

from tightship.frontend.torch.call import Call
from tightship.frontend.torch.refusal import refused
from tightship.frontend.writer import Operand, axis_of
from tightship.graph import DType


def reduced(operator: str, call: Call) -> Operand:
    """Translate a reduction over some axes, or over all of them."""
    return _reduced(operator, call, call.cast(call["self"], call.dtype))


def _reduced(operator: str, call: Call, operand: Operand) -> Operand:
    axes = _axes(call.arguments.get("dim"), operand.rank)
    if not operand.rank:
        return operand
    keep = int(bool(call.arguments.get("keepdim", False)))
    return call.result(operator, operand, call.integers(*axes), keepdims=keep)


def norm(call: Call) -> Operand:
    """Translate a norm of order 1 or 2."""
    operator = {1: "ReduceL1", 2: "ReduceL2"}.get(call["ord"])
    if operator is None:
        raise refused(call.node, f"is a norm of the order {call['ord']}; only 1 and 2 are known")
    return reduced(operator, call)


def _axes(given: int | Sequence[int] | None, rank: int) -> list[int]:
    if isinstance(given, int):
        return [axis_of(given, rank)]
    return sorted(axis_of(axis, rank) for axis in given or range(rank))


def is_any(call: Call) -> Operand:
    """Translate `any`."""
    return _of_booleans("ReduceMax", call)


def are_all(call: Call) -> Operand:
    """Translate `all`."""
    return _of_booleans("ReduceMin", call)


def _of_booleans(operator: str, call: Call) -> Operand:
    operand = call.cast(call.cast(call["self"], DType.BOOL), DType.INT32)
    axes = _axes(call.arguments.get("dim"), operand.rank)
    if not operand.rank:
        return call.cast(operand, DType.BOOL)
    keep = int(bool(call.arguments.get("keepdim", False)))
    type_ = (DType.INT32, call.shape)
    result = call.add(operator, type_, operand, call.integers(*axes), keepdims=keep)
    return call.cast(result, DType.BOOL)


def variance_and_mean(call: Call) -> tuple[Operand | None, ...]:
    """Translate `var_mean`."""
    axes = _axes(call["dim"], call["self"].rank)
    keep = int(call["keepdim"])
    mean = call.result("ReduceMean", call["self"], call.integers(*axes), keepdims=keep)
    return variance(call), mean


def variance(call: Call) -> Operand:
    """Translate `var`: the sum of squared differences from the mean, over `n - correction`."""
    operand: Operand = call["self"]
    axes = _axes(call["dim"], operand.rank)
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(operand.shape))
    where = call.integers(*axes)
    mean = call.add("ReduceMean", (call.dtype, kept), operand, where, keepdims=1)
    difference = call.like("Sub", operand, mean)
    square = call.like("Mul", difference, difference)
    correction = 1 if call["correction"] is None else call["correction"]
    correction = int(correction) if correction == int(correction) else correction
    count = 1
    for axis in axes:
        count *= operand.shape[axis]
    keep = int(call["keepdim"])
    total = call.add("ReduceSum", (call.dtype, call.shape), square, where, keepdims=keep)
    return call.result("Div", total, call.scalar(count - correction, call.dtype))


def position(operator: str, call: Call) -> Operand:
    """Translate `argmax` or `argmin`."""
    operand: Operand = call["self"]
    dim = call["dim"]
    if dim is None:
        flat = 1
        for length in operand.shape:
            flat *= length
        operand, dim = call.reshaped(operand, (flat,)), 0
    found = _without(operand.shape, dim, keep=call["keepdim"])
    result = call.add(
        operator,
        (DType.INT64, found),
        operand,
        axis=axis_of(dim, operand.rank),
        keepdims=int(call["keepdim"]),
    )
    return call.reshaped(result, call.shape)


def extreme(operators: tuple[str, str], call: Call) -> tuple[Operand | None, ...]:
    """Translate the maximum or minimum along an axis, with its position."""
    operand: Operand = call["self"]
    axis, keep = axis_of(call["dim"], operand.rank), int(call["keepdim"])
    value = call.result(operators[0], operand, call.integers(axis), keepdims=keep)
    index = call.add(operators[1], (DType.INT64, call.shape), operand, axis=axis, keepdims=keep)
    return value, index


def softmax(operator: str, call: Call) -> Operand:
    """Translate Softmax or LogSoftmax."""
    operand = call.cast(call["self"], call.dtype)
    return call.result(operator, operand, axis=axis_of(call["dim"], operand.rank))


def running_sum(call: Call) -> Operand:
    """Translate `cumsum`."""
    operand = call.cast(call["self"], call.dtype)
    axis = call.scalar(axis_of(call["dim"], operand.rank), DType.INT64)
    return call.result("CumSum", operand, axis)


def largest(call: Call) -> tuple[Operand | None, ...]:
    """Translate `topk`."""
    return _ordered(call, call["k"], descending=call["largest"])


def in_order(call: Call) -> tuple[Operand | None, ...]:
    """Translate `sort`."""
    operand: Operand = call["self"]
    return _ordered(call, operand.shape[call["dim"]], descending=call["descending"])


def _ordered(call: Call, count: int, *, descending: bool) -> tuple[Operand | None, ...]:
    operand: Operand = call["self"]
    if not operand.rank:
        raise refused(call.node, "orders a tensor without dimensions")
    values = call.writer.define(call.node.name, call.dtype, call.shape)
    indices = call.writer.define(f"{call.node.name}.indices", DType.INT64, call.shape)
    call.writer.node(
        "TopK",
        (operand, call.integers(count)),
        (values, indices),
        {"axis": axis_of(call["dim"], operand.rank), "largest": int(descending), "sorted": 1},
    )
    return values, indices


def _without(shape: tuple[int, ...], dim: int, *, keep: bool) -> tuple[int, ...]:
    axis = axis_of(dim, len(shape))
    return (*shape[:axis], *((1,) if keep else ()), *shape[axis + 1 :])


_REDUCTIONS = {
    "amax.default": "ReduceMax",
    "amin.default": "ReduceMin",
    "max.default": "ReduceMax",
    "mean.default": "ReduceMean",
    "mean.dim": "ReduceMean",
    "min.default": "ReduceMin",
    "prod.default": "ReduceProd",
    "prod.dim_int": "ReduceProd",
    "sum.default": "ReduceSum",
    "sum.dim_IntList": "ReduceSum",
}

TABLE: dict[str, Callable[[Call], Operand | tuple[Operand | None, ...]]] = {
    **{name: partial(reduced, operator) for name, operator in _REDUCTIONS.items()},
    "_log_softmax.default": partial(softmax, "LogSoftmax"),
    "_softmax.default": partial(softmax, "Softmax"),
    "all.default": are_all,
    "all.dim": are_all,
    "any.default": is_any,
    "any.dim": is_any,
    "any.dims": is_any,
    "argmax.default": partial(position, "ArgMax"),
    "argmin.default": partial(position, "ArgMin"),
    "cumsum.default": running_sum,
    "linalg_vector_norm.default": norm,
    "log_softmax.int": partial(softmax, "LogSoftmax"),
    "max.dim": partial(extreme, ("ReduceMax", "ArgMax")),
    "min.dim": partial(extreme, ("ReduceMin", "ArgMin")),
    "softmax.int": partial(softmax, "Softmax"),
    "sort.default": in_order,
    "topk.default": largest,
    "var.correction": variance,
    "var_mean.correction": variance_and_mean,
}
