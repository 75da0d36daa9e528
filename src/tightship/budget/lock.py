"""Writes and compares lock files: the planned bytes of a project's models, for review."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.brief import brief
from tightship.budget.budget import BudgetResult
from tightship.errors import FormatError, InputError

VERSION = 1
LOCK = "tightship.lock"
_HEAD = (
    "# Written by `tightship budget lock`. A number that changes is memory that a model takes\n"
    "# more or less of; `tightship budget lock --check` fails until this file says the same.\n"
)
_PARTS = {
    "weights_bytes": "weights",
    "arena_bytes": "arena",
    "inputs_and_outputs_bytes": "inputs and outputs",
    "runtime_bytes": "runtime",
}
AMOUNTS = ("peak_bytes", *_PARTS)


@brief
@dataclass(frozen=True, slots=True)
class Locked:
    """Bytes of models by title, as a lock file has them, and what they were planned for."""

    isa: str
    models: Mapping[str, Mapping[str, int]]


def locked(results: Sequence[BudgetResult], isa: str) -> Locked:
    """Return what a lock file would say of plans.

    Args:
        results: Budgets with the plans of their models.
        isa: Instruction set that they were planned for.
    """
    return Locked(isa, {each.budget.title: _amounts(each) for each in results})


def write_lock(path: str | PathLike[str], found: Locked) -> None:
    """Write a lock file, which is replaced whole or not at all.

    Args:
        path: File to write.
        found: What it says.

    Raises:
        OSError: It cannot be written; an older one is then untouched.
    """
    write_text(Path(path), lock_text(found))


def lock_text(found: Locked) -> str:
    """Return the text of a lock file: the same for the same bytes."""
    blocks = [f"{_HEAD}version = {VERSION}\nisa = {_quoted(found.isa)}\n"]
    for title, amounts in found.models.items():
        lines = [f"{name} = {size}" for name, size in amounts.items()]
        blocks.append("\n".join([f"[model.{_quoted(title)}]", *lines]) + "\n")
    return "\n".join(blocks)


def read_lock(path: str | PathLike[str]) -> Locked:
    """Read a lock file.

    Raises:
        FormatError: It is not one, or of another version.
        InputError: There is none.
    """
    file = Path(path)
    if not file.is_file():
        raise InputError(f"The file `{file}` does not exist; `tightship budget lock` writes it.")
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        if content["version"] != VERSION:
            raise FormatError(
                f"`{file}` has version {content['version']}; this is Tightship with version "
                f"{VERSION}. Write it again by `tightship budget lock`."
            )
        models = {
            str(title): {name: int(amounts[name]) for name in AMOUNTS}
            for title, amounts in content.get("model", {}).items()
        }
        return Locked(str(content["isa"]), models)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        raise FormatError(
            f"`{file}` is not a lock file of budgets, or is damaged; write it again by "
            "`tightship budget lock`."
        ) from None


def _amounts(result: BudgetResult) -> dict[str, int]:
    plan = result.plan
    parts = {"arena": plan.arena_bytes, **plan.parts}
    sizes = {name: parts.get(part, 0) for name, part in _PARTS.items()}
    return {"peak_bytes": plan.peak_bytes, **sizes}


def _quoted(text: str) -> str:
    """Return a basic string of TOML."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
