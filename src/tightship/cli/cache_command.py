"""Implements `tightship cache`, which lists or removes the prepared models of this user."""

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tightship.cli.output import show, show_json
from tightship.prepared_cache import Entry, cache_folder, cache_size_bytes, clear, entries
from tightship.quantity import format_bytes
from tightship.view.table import Column, table


def run(options: argparse.Namespace) -> int:
    """List or remove prepared models."""
    folder = cache_folder()
    if options.action == "clear":
        _clear(folder, in_json=options.json)
    else:
        _list(folder, in_json=options.json)
    return 0


def _list(folder: Path, *, in_json: bool) -> None:
    found = entries(folder)
    total, limit = sum(entry.size_bytes for entry in found), cache_size_bytes()
    if in_json:
        rows = [_row(entry) for entry in found]
        show_json({"folder": str(folder), "limit_bytes": limit, "entries": rows})
        return
    lines = [f"{format_bytes(total)} of {format_bytes(limit)} in {folder}"]
    if found:
        columns = [
            Column("model"), Column("for"), Column("size", number=True), Column("last used"),
        ]  # fmt: skip
        lines += ["", *table(columns, [_cells(entry) for entry in found], indent=2)]
    show("\n".join(lines) + "\n")


def _clear(folder: Path, *, in_json: bool) -> None:
    removed, left = clear(folder)
    freed = sum(entry.size_bytes for entry in removed)
    if in_json:
        show_json({"folder": str(folder), "removed_bytes": freed, **_counts(removed, left)})
        return
    text = f"removed {len(removed)} prepared models, {format_bytes(freed)}, from {folder}"
    if left:
        text += f"; left {len(left)} that are being made"
    show(text + "\n")


def _counts(removed: Sequence[Entry], left: Sequence[Entry]) -> dict[str, int]:
    return {"removed": len(removed), "left": len(left)}


def _row(entry: Entry) -> dict[str, Any]:
    return {
        "key": entry.key,
        "size_bytes": entry.size_bytes,
        "used_ns": entry.used_ns,
        "complete": entry.is_complete,
        **entry.about,
    }


def _cells(entry: Entry) -> tuple[str, str, str, str]:
    facts = [f"{name} {what}" for name, what in entry.about.items() if name.startswith("shape ")]
    if "context" in entry.about:
        facts.append(f"sessions of {entry.about['context']} tokens")
    if "joint" in entry.about:
        facts.append(f"{entry.about['joint']} of them at once")
    if "tokens" in entry.about:
        facts.append(f"{entry.about['tokens']} at once")
    if "matrices" in entry.about:
        facts.append(f"matrices {entry.about['matrices']}")
    threads = entry.about.get("threads", "any")
    size = format_bytes(entry.size_bytes) if entry.is_complete else "unfinished"
    used = datetime.fromtimestamp(entry.used_ns / 1e9, tz=UTC).astimezone()
    compatibility = ", ".join(
        [*(fact.removeprefix("shape ") for fact in facts), f"{threads} thread(s)"]
    )
    return str(entry.about.get("model", "?")), compatibility, size, f"{used:%Y-%m-%d %H:%M}"
