"""Products of arrays along axes."""

import math
from collections.abc import Callable, Sequence

from tightship.frontend.jax.call import Call
from tightship.frontend.writer import Operand
from tightship.graph import DType


def contracted(call: Call) -> Operand:
    """Translate sums of products over contracted axes.

    The result has the batch axes, then the free axes of the left and of the right operand.
    """
    (left_sum, right_sum), (left_batch, right_batch) = (
        tuple(tuple(int(axis) for axis in side) for side in pair)
        for pair in call["dimension_numbers"]
    )
    left, right = call.operands
    if left.dtype is DType.BOOL:
        raise call.refuse("multiplies booleans")
    free = [
        tuple(axis for axis in range(each.rank) if axis not in (*summed, *batch))
        for each, summed, batch in (
            (left, left_sum, left_batch), (right, right_sum, right_batch)
        )
    ]  # fmt: skip
    rows, row_turned = _matrices(call, left, left_batch, free[0], left_sum)
    columns, column_turned = _matrices(call, right, right_batch, right_sum, free[1])
    found = _product(call, rows, columns, (row_turned, column_turned))
    return call.cast(call.reshaped(found, call.shape), call.dtype)


def _matrices(call: Call, operand: Operand, *groups: Sequence[int]) -> tuple[Operand, bool]:
    """Return a stack of matrices, and whether rows and columns are exchanged.

    `groups` are axes of the batch, of the rows and of the columns.
    """
    batch, rows, columns = (tuple(group) for group in groups)
    order, is_turned = (*batch, *rows, *columns), False
    if order != tuple(range(operand.rank)) and (*batch, *columns, *rows) == tuple(
        range(operand.rank)
    ):
        order, is_turned = (*batch, *columns, *rows), True
        rows, columns = columns, rows
    moved = call.permuted(operand, order)
    lengths = [math.prod(operand.shape[axis] for axis in group) for group in (rows, columns)]
    return call.reshaped(moved, [*(operand.shape[axis] for axis in batch), *lengths]), is_turned


def _product(call: Call, left: Operand, right: Operand, turned: tuple[bool, bool]) -> Operand:
    rows = left.shape[-1] if turned[0] else left.shape[-2]
    columns = right.shape[-2] if turned[1] else right.shape[-1]
    kind = (left.dtype, (*left.shape[:-2], rows, columns))
    if not any(turned):
        return call.add("MatMul", kind, left, right)
    how = {"transA": int(turned[0]), "transB": int(turned[1])}
    if left.rank == 2:
        return call.add("Gemm", kind, left, right, **how)
    return call.only(call.own("TransposedMatMul", (left, right), how))


TABLE: dict[str, Callable[[Call], Operand]] = {"dot_general": contracted}
