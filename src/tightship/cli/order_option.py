"""Orders of buffers from the files of plans."""

from collections.abc import Sequence
from pathlib import Path

from tightship.errors import FormatError
from tightship.planner.format.problem_file import read_offsets
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array
from tightship.planner.stored_order import StoredOrders, order_of
from tightship.planner.verify import verify_offsets


def read_orders(paths: Sequence[Path]) -> StoredOrders:
    """The orders in which buffers lie in plans of the same buffers, whoever made them.

    Args:
        paths: At least one; whatever `read_offsets` reads.

    Raises:
        InvalidPlanError: A plan is wrong.
        FormatError: The plans are of different buffers, or one of them holds no plan.
        InputError, OSError: A file cannot be read.
    """
    orders: list[Int64Array] = []
    names = None
    for path in paths:
        problem, offset_bytes = read_offsets(path)
        verify_offsets(problem, offset_bytes)
        called = None if problem.names is None else tuple(problem.names)
        if orders and (called != names or problem.count != len(orders[0])):
            raise FormatError(
                f"`{path}` is a plan of {problem.count} buffers, not of those in `{paths[0]}`; "
                "orders are of one set of buffers with the same names."
            )
        names = called
        orders.append(order_of(Plan(problem, offset_bytes, "given", 0, "feasible")))
    return StoredOrders(tuple(orders), names)
