"""Tabulates budgets and lock files."""

from collections.abc import Sequence

from tightship.budget.budget import BudgetResult
from tightship.budget.lock import AMOUNTS, Locked
from tightship.quantity import format_bytes
from tightship.view.table import WIDTH_MAX, Column, table
from tightship.view.text import printable, shorten


def check_text(results: Sequence[BudgetResult], isa: str) -> str:
    """Tabulate budgets with what each model takes, those that are exceeded first."""
    over = [each for each in results if not each.fits]
    limited = sum(each.budget.limit_bytes is not None for each in results)
    head = f"{len(over)} of {limited} budgets exceeded, planned for {isa}"
    columns = [
        Column("model"),
        Column("budget", number=True),
        Column("needs", number=True),
        Column("over by", number=True),
        Column("largest at the peak"),
    ]
    rows = [_row(each) for each in sorted(results, key=lambda each: each.fits)]
    lines = [head, "", *table(columns, rows, indent=2)]
    lines += [shorten(printable(each.message()), WIDTH_MAX) for each in over if each.is_unbounded]
    return "\n".join(lines) + "\n"


def _row(result: BudgetResult) -> list[str]:
    limit = result.budget.limit_bytes
    over = format_bytes(result.over_bytes) if result.over_bytes else ""
    return [
        result.budget.title,
        "none" if limit is None else format_bytes(limit),
        format_bytes(result.needed_bytes),
        "unbounded" if result.is_unbounded and limit is not None else over,
        result.largest,
    ]


def check_json(results: Sequence[BudgetResult], isa: str) -> dict[str, object]:
    """Convert budgets to JSON values; amounts are integers named `*_bytes`."""
    return {
        "isa": isa,
        "fits": all(each.fits for each in results),
        "budgets": [
            {
                "name": each.budget.title,
                "model": str(each.budget.model),
                "limit_bytes": each.budget.limit_bytes,
                "needed_bytes": each.needed_bytes,
                "over_bytes": each.over_bytes,
                "exact": each.plan.is_exact,
                "fits": each.fits,
                "largest_at_peak": each.largest,
            }
            for each in results
        ],
    }


def lock_difference(old: Locked, new: Locked) -> str:
    """Tabulate the amounts that two lock files differ in; empty if they say the same."""
    rows = []
    for title in dict.fromkeys([*new.models, *old.models]):
        before, after = old.models.get(title, {}), new.models.get(title, {})
        for name in AMOUNTS:
            was, now = before.get(name, 0), after.get(name, 0)
            if was != now:
                sign = "-" if now < was else "+"
                change = f"{sign}{format_bytes(abs(now - was))}"
                amount = name.removesuffix("_bytes").replace("_", " ")
                rows.append([title, amount, f"{was:,}", f"{now:,}", change])
    columns = [
        Column("model"),
        Column("bytes of"),
        Column("locked", number=True),
        Column("planned", number=True),
        Column("change", number=True),
    ]
    lines = [f"Locked for {old.isa}, planned for {new.isa}"] if old.isa != new.isa else []
    if rows:
        lines += table(columns, rows, indent=2)
    return "\n".join(lines) + "\n" if lines else ""
