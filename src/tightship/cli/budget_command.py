"""Implements `tightship budget`: models held to budgets of memory."""

import argparse
from pathlib import Path

from tightship.budget import check_budgets, locked, read_budgets, read_lock, write_lock
from tightship.budget.lock import LOCK
from tightship.budget.tables import check_json, check_text, lock_difference
from tightship.cli.output import show, show_json

EXCEEDED = 1


def run(options: argparse.Namespace) -> int:
    """Check budgets, or write what the models take.

    Returns:
        0 if all fit or the file is written, 1 if a budget is exceeded or a lock file says
        otherwise.
    """
    budgets = read_budgets(options.budgets)
    isa = options.isa or budgets.isa
    output = Path(getattr(options, "output", None) or budgets.path.parent / LOCK)
    if options.action == "lock":
        before = read_lock(output) if options.check else None
        found = locked(check_budgets(budgets, isa=isa), isa)
        if before is None:
            write_lock(output, found)
            show(f"{output}: {len(found.models)} models, planned for {isa}\n")
            return 0
        text = lock_difference(before, found)
        show(text or f"{output}: {len(found.models)} models as planned for {isa}\n")
        return EXCEEDED if text else 0
    results = check_budgets(budgets, isa=isa)
    if options.json:
        show_json(check_json(results, isa))
    else:
        show(check_text(results, isa))
    return 0 if all(each.fits for each in results) else EXCEEDED
