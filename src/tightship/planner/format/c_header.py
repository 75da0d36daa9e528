"""Writes the offsets of a plan as a C header, for programs that place their buffers themselves."""

import re
from collections.abc import Iterable
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.planner.plan import Plan

SIGNIFICANT = 63
"""First characters of an identifier that every compiler of C tells apart."""

NAME_MIN = 16
"""Characters of a name that an identifier keeps at least, also behind a long prefix."""


def write_c_header(path: Path, plan: Plan, command: str = "") -> None:
    """Write a plan as macros: the peak, the alignment of the base, and an offset for each buffer.

    Macros begin with the file's name. A plan that does not fit its capacity gets an `#error`, so
    that no program is built with it by mistake.

    Args:
        path: The file.
        plan: The plan.
        command: The command that made it, for a comment; empty for none.

    Raises:
        OSError: The file cannot be written; an older file is then untouched.
    """
    write_text(path, c_header(plan, _prefix(path.stem), command))


def c_header(plan: Plan, prefix: str, command: str = "") -> str:
    """Return the text that `write_c_header` writes, with macros that begin with `prefix`."""
    problem = plan.problem
    names = problem.names or [str(index) for index in range(problem.count)]
    lines = [f"/* Offsets of {problem.count} buffers in an arena: {_comment(plan.strategy)}."]
    if command:
        lines.append(f" * Made by: {_comment(command)}")
    lines += [" */", f"#ifndef {prefix}_H", f"#define {prefix}_H", ""]
    if plan.status in ("infeasible", "budget"):
        lines += [f'#error "This plan does not fit {problem.capacity_bytes or "its"} bytes."', ""]
    alignment = int(problem.alignment.max(initial=1))
    lines += [
        f"#define {prefix}_BYTES {plan.peak_bytes} /* bytes of the arena: the peak */",
        f"#define {prefix}_ALIGNMENT {alignment} /* bytes; the arena's base needs it */",
        "",
    ]
    banks = plan.bank.tolist() if plan.bank is not None else []
    if banks and problem.constraints is not None:
        held = [bank.name for bank in problem.constraints.banks]
        for name, unique, peak in zip(
            held, _identifiers(held, f"{prefix}_BYTES_"), plan.bank_peak_bytes, strict=True
        ):
            lines.append(f"#define {unique} {peak} /* bytes of the bank {_quoted(name)} */")
        lines.append("")
        for name, unique, bank in zip(
            names, _identifiers(names, f"{prefix}_BANK_"), banks, strict=True
        ):
            lines.append(f"#define {unique} {bank} /* {_quoted(name)} in {_quoted(held[bank])} */")
        lines.append("")
    rows = zip(
        names,
        _identifiers(names, f"{prefix}_OFFSET_"),
        plan.offset_bytes.tolist(),
        problem.size_bytes.tolist(),
        strict=True,
    )
    for name, unique, offset, size in rows:
        lines.append(f"#define {unique} {offset} /* {_quoted(name)}, {size} bytes */")
    return "\n".join([*lines, "", f"#endif /* {prefix}_H */", ""])


def _prefix(stem: str) -> str:
    """Return the name of a file in capitals, as an identifier."""
    word = _word(stem).upper()
    return word if word[:1].isalpha() else f"PLAN_{word}".rstrip("_")


def _identifiers(names: Iterable[str], prefix: str) -> list[str]:
    """Return a valid identifier for each name, all different in their significant characters."""
    room = max(NAME_MIN, SIGNIFICANT - len(prefix))
    used: set[str] = set()
    next_number: dict[str, int] = {}
    found = []
    for index, name in enumerate(names):
        word = _word(name) or f"buffer_{index}"
        word = word[-room:].lstrip("_")  # ends of tensors' names differ more than their beginnings
        unique, number = word, next_number.get(word, 2)
        while unique in used:
            tail = f"_{number}"
            unique, number = word[-(room - len(tail)) :].lstrip("_") + tail, number + 1
        next_number[word] = number
        used.add(unique)
        found.append(prefix + unique)
    return found


def _word(name: str) -> str:
    """Return the ASCII letters and digits of a name, with one underscore for all between them."""
    return re.sub("[^A-Za-z0-9]+", "_", name).strip("_")


def _quoted(name: str) -> str:
    return f"`{_comment(name)}`"


def _comment(text: str) -> str:
    """Return a text in ASCII that neither ends nor begins a comment, nor continues a line."""
    plain = text.encode("unicode_escape").decode()
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("??/", "?? /")
