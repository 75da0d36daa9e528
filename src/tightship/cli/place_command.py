"""Implements `tightship place`: offsets for a set of buffers."""

import argparse
import shlex
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tightship.cli.drawing import DRAWINGS, draw, picture_of_placed
from tightship.cli.output import show, show_json
from tightship.errors import FormatError, InputError
from tightship.planner import Bank, Constraints, Problem, place
from tightship.planner.format.csv_constraints import columns_of
from tightship.planner.format.problem_file import (
    check_placed,
    read_offsets,
    read_problem,
    write_placed,
)
from tightship.planner.format.suffixes import holds_buffers
from tightship.planner.large import LARGE_COUNT
from tightship.planner.plan import Conflict, Goal, Plan
from tightship.planner.portfolio import place_within
from tightship.planner.problem import Int64Array
from tightship.planner.stored_order import StoredOrders, order_of
from tightship.planner.verify import verify_offsets
from tightship.quantity import format_bytes
from tightship.view.text import printable


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


CONFLICT_SHOWN = 12
"""Most buffers of a conflict to name in text; JSON names all."""

EXIT_CODES = {"optimal": 0, "feasible": 0, "infeasible": 1, "budget": 3}


def run(options: argparse.Namespace) -> int:
    """Place the buffers of a file."""
    source = Path(options.file)
    output = None if options.output is None else Path(options.output)
    _check(options, source, output)
    problem, _ = read_problem(source, capacity_bytes=options.capacity)
    problem = with_banks(problem, options.bank)
    if output is not None and output.suffix == ".csv":
        columns_of(problem)  # refuses what a CSV cannot hold
    orders = read_orders([Path(file) for file in options.order]) if options.order else None
    start = time.perf_counter_ns()
    plan = _placed(options, problem) if orders is None else orders.decode(problem)
    solve_ns = time.perf_counter_ns() - start
    if output is not None and output.suffix in DRAWINGS:
        bound = plan.lower_bound_bytes
        draw(picture_of_placed(source.name, problem, plan.offset_bytes, bound), output)
    elif output is not None:
        write_placed(output, plan, source, command_of(options))
    if options.json:
        show_json(_json(plan, solve_ns))
    else:
        show(_text(source.name, plan, solve_ns))
    return EXIT_CODES[plan.status]


def _check(options: argparse.Namespace, source: Path, output: Path | None) -> None:
    """Raise `InputError` for options that do not go together, or names of other files."""
    if options.order and options.minimize:
        raise InputError(
            "`--order` stacks the buffers in a given order, and `--minimize` searches for one; "
            "give only one of the two."
        )
    if options.order and (options.bank or options.time_limit is not None):
        other = "--bank" if options.bank else "--time-limit"
        raise InputError(
            f"`--order` stacks the buffers of one arena, without a search; leave out `{other}`."
        )
    if not holds_buffers(source):
        raise InputError(
            f"`{printable(source.name)}` is not a file of buffers, which ends in `.csv`, `.json`, "
            "`.jsonl` or `.tflite`; `tightship plan` plans a model."
        )
    if output is not None and output.suffix not in DRAWINGS:
        check_placed(output, source)


def _placed(options: argparse.Namespace, problem: Problem) -> Plan:
    goal: Goal | None = "minimize" if options.minimize else None
    threads = options.threads or 1
    if options.time_limit is None:
        return place(problem, goal=goal, threads=threads)
    if problem.count >= LARGE_COUNT:
        raise InputError(
            f"`--time-limit` ends the exact search, which is for fewer than {LARGE_COUNT:,} "
            f"buffers; the problem has {problem.count:,}. Leave the option out."
        )
    return place_within(problem, goal, threads, options.time_limit)


def with_banks(problem: Problem, banks: Sequence[tuple[str, int | None]]) -> Problem:
    """Return a problem whose buffers may lie in any of some banks; a byte in bank i costs i.

    Args:
        problem: n buffers.
        banks: Names with capacities in bytes; without any the problem stays as it is.

    Raises:
        InputError: Two banks have one name, or the file has banks of its own.
        PlanError: The problem has a capacity; give each bank its own instead.
    """
    if not banks:
        return problem
    names = [name for name, _ in banks]
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InputError(
            f"`--bank {repeated[0]}` is given twice; give each bank a name of its own."
        )
    constraints = problem.constraints or Constraints()
    if constraints.banks:
        held = ", ".join(f"`{printable(bank.name)}`" for bank in constraints.banks)
        raise InputError(f"The file has banks of its own ({held}); leave out `--bank`.")
    made = tuple(Bank(name, size_bytes, cost) for cost, (name, size_bytes) in enumerate(banks))
    return replace(problem, constraints=replace(constraints, banks=made))


def command_of(options: argparse.Namespace) -> str:
    """Return the command that options were read from."""
    words = ["tightship", "place", options.file]
    words += [] if options.capacity is None else ["--capacity", str(options.capacity)]
    words += ["--minimize"] if options.minimize else []
    for path in options.order:
        words += ["--order", path]
    for name, size_bytes in options.bank:
        words += ["--bank", name if size_bytes is None else f"{name}={size_bytes}"]
    words += [] if options.time_limit is None else ["--time-limit", f"{options.time_limit:g}"]
    words += [] if options.threads is None else ["--threads", str(options.threads)]
    return shlex.join([*words, "-o", options.output])


def _json(plan: Plan, solve_ns: int) -> dict[str, object]:
    banks = {}
    if plan.bank is not None:
        banks = {"bank": plan.bank.tolist(), "bank_peak_bytes": list(plan.bank_peak_bytes),
                 "cost": plan.cost}  # fmt: skip
    return {
        "status": plan.status,
        "peak_bytes": plan.peak_bytes,
        "lower_bound_bytes": plan.lower_bound_bytes,
        "gap": plan.gap,
        "capacity_bytes": plan.problem.capacity_bytes,
        "buffer_count": plan.problem.count,
        "strategy": plan.strategy,
        "conflict": _conflict_json(plan),
        "solve_ns": solve_ns,
        "offset_bytes": plan.offset_bytes.tolist(),
        **banks,
    }


def _text(name: str, plan: Plan, solve_ns: int) -> str:
    capacity = plan.problem.capacity_bytes
    lines = [
        f"{name}: peak {plan.peak_bytes} bytes ({format_bytes(plan.peak_bytes)}), {plan.status}",
        f"lower bound {plan.lower_bound_bytes} bytes, gap {plan.gap:.2%}; "
        f"{plan.problem.count} buffers of {int(plan.problem.size_bytes.sum())} bytes in all",
        f"placed by {plan.strategy} in {solve_ns / 1e6:.1f} ms",
    ]
    constraints = plan.problem.constraints
    if plan.bank is not None and constraints is not None:
        for bank, peak in zip(constraints.banks, plan.bank_peak_bytes, strict=True):
            limit = "no limit" if bank.capacity_bytes is None else f"of {bank.capacity_bytes}"
            lines.append(f"bank `{bank.name}`: {peak} bytes, {limit}")
        lines.append(f"cost {plan.cost}")
    if capacity is not None:
        verdict = {
            "infeasible": "proved not to fit",
            "budget": "no plan that fits was found, and none was excluded",
        }.get(plan.status, "fits")
        lines.append(f"capacity {capacity} bytes: {verdict}")
    if plan.conflict is not None:
        lines.append(_conflict_text(plan.problem, plan.conflict))
    return "\n".join(lines) + "\n"


def _conflict_json(plan: Plan) -> dict[str, object] | None:
    if plan.conflict is None:
        return None
    names = _names(plan.problem, plan.conflict)
    return {"buffers": names, "minimal": plan.conflict.is_minimal}


def _conflict_text(problem: Problem, conflict: Conflict) -> str:
    """Describe the buffers that do not fit together."""
    names = [f"`{printable(name)}`" for name in _names(problem, conflict)]
    more = f" and {len(names) - CONFLICT_SHOWN} more" if len(names) > CONFLICT_SHOWN else ""
    least = ", and without any one of them the others do" if conflict.is_minimal else ""
    return (
        f"these {len(names)} buffers do not fit together{least}: "
        f"{', '.join(names[:CONFLICT_SHOWN])}{more}"
    )


def _names(problem: Problem, conflict: Conflict) -> list[str]:
    names = problem.names
    return [str(index) if names is None else names[index] for index in conflict.buffers]
