"""Reductions, running sums and sorting."""

from collections.abc import Callable
from functools import partial

from tightship.frontend.jax.call import Call
from tightship.frontend.writer import Operand
from tightship.graph import DType


def reduced(operator: str, call: Call) -> Operand:
    """Translate a reduction over some axes, which are removed."""
    return _reduced(operator, call, call.operand)


def _reduced(operator: str, call: Call, operand: Operand) -> Operand:
    axes = [int(axis) for axis in call["axes"]]
    if not axes:
        return operand
    kind = (operand.dtype, call.shape)
    return call.add(operator, kind, operand, call.integers(*axes), keepdims=0)


def of_booleans(operator: str, call: Call) -> Operand:
    """Translate the test for any or all true elements."""
    return call.cast(_reduced(operator, call, call.cast(call.operand, DType.INT32)), DType.BOOL)


def position(operator: str, call: Call) -> Operand:
    """Translate the position of the largest or smallest element, the first of equal ones."""
    (axis,) = call["axes"]
    kind = (DType.INT64, call.shape)
    found = call.add(operator, kind, call.operand, axis=int(axis), keepdims=0)
    return call.cast(found, call.dtype)


def running_sum(call: Call) -> Operand:
    """Translate a cumulative sum, forward or reverse."""
    axis = call.scalar(int(call["axis"]), DType.INT64)
    return call.result("CumSum", call.operand, axis, reverse=int(call["reverse"]))


def in_order(call: Call) -> tuple[Operand, ...]:
    """Translate a sort by the first operand."""
    if call["num_keys"] != 1:
        raise call.refuse(f"orders by {call['num_keys']} keys")
    axis = int(call["dimension"])
    first, *others = call.operands
    values, places = _largest(call, first, first.shape[axis], axis, is_largest=False)
    moved = [call.like("GatherElements", each, places, axis=axis) for each in others]
    return (values, *moved)


def largest(call: Call) -> tuple[Operand, ...]:
    """Translate the `k` largest along an axis, with their positions."""
    axis = int(call.equation.params.get("axis", call.operand.rank - 1)) % call.operand.rank
    values, places = _largest(call, call.operand, int(call["k"]), axis, is_largest=True)
    assert call.types[1] is not None
    return values, call.cast(places, call.types[1][0])


def _largest(
    call: Call, operand: Operand, count: int, axis: int, *, is_largest: bool
) -> tuple[Operand, Operand]:
    shape = (*operand.shape[:axis], count, *operand.shape[axis + 1 :])
    values = call.writer.define(call.stem, operand.dtype, shape)
    places = call.writer.define(call.stem, DType.INT64, shape)
    attributes = {"axis": axis, "largest": int(is_largest), "sorted": 1}
    call.writer.node("TopK", (operand, call.integers(count)), (values, places), attributes)
    return values, places


TABLE: dict[str, Callable[[Call], Operand | tuple[Operand, ...]]] = {
    "argmax": partial(position, "ArgMax"),
    "argmin": partial(position, "ArgMin"),
    "cumsum": running_sum,
    "reduce_and": partial(of_booleans, "ReduceMin"),
    "reduce_max": partial(reduced, "ReduceMax"),
    "reduce_min": partial(reduced, "ReduceMin"),
    "reduce_or": partial(of_booleans, "ReduceMax"),
    "reduce_prod": partial(reduced, "ReduceProd"),
    "reduce_sum": partial(reduced, "ReduceSum"),
    "sort": in_order,
    "top_k": largest,
}
