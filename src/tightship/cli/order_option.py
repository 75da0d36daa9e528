"""Reads orders of buffers from plan files."""

from collections.abc import Sequence
from pathlib import Path

from tightship.errors import FormatError
from tightship.planner.format.problem_file import read_offsets
from tightship.planner.plan import Plan
from tightship.planner.problem import Int64Array
from tightship.planner.stored_order import StoredOrders, order_of
from tightship.planner.verify import verify_offsets


def read_orders(paths: Sequence[Path]) -> StoredOrders:
    """Read the orders in which buffers lie in plans of the same buffers, whichever tool made them.

    Args:
        paths: At least one file that `read_offsets` can read.

    Raises:
        InvalidPlanError: A plan is invalid.
        FormatError: The plans have different buffers, or a file holds no plan.
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
                f"`{path}` is a plan of {problem.count} buffers that are not those of "
                f"`{paths[0]}`; give plans of the same buffers with the same names."
            )
        names = called
        orders.append(order_of(Plan(problem, offset_bytes, "given", 0, "feasible")))
    return StoredOrders(tuple(orders), names)
