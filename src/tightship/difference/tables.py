"""Writes a difference of plans as text, Markdown and HTML: the same facts in the same order."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from tightship.difference.change import Change, PlanDifference
from tightship.quantity import format_bytes
from tightship.view.picture import Picture
from tightship.view.table import WIDTH_MAX, Column, table
from tightship.view.text import display_width, printable, shorten

_SHOWN = 10
_SUMS_SHOWN = 6
_INDENT = 2
_UNNAMED = {"elsewhere": "room at this step", "holes": "holes", "rounding": "rounding"}


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows under titles; the columns from `numbers_from` on are numbers."""

    titles: tuple[str, ...]
    rows: list[list[str]]
    numbers_from: int
    rest: str = ""


def signed(size_bytes: int) -> str:
    """Write a difference in bytes with its sign, as `+1.20 MiB`; `0 B` for none."""
    sign = "" if not size_bytes else "-" if size_bytes < 0 else "+"
    return f"{sign}{format_bytes(abs(size_bytes))}"


def text_of(difference: PlanDifference) -> str:
    """Describe a difference in tables of at most 100 columns."""
    blocks = [[part for line in _headline(difference) for part in _wrapped(printable(line))]]
    for each in _tables(difference):
        last = len(each.titles)
        columns = [
            Column(title, number=index >= each.numbers_from and index < last)
            for index, title in enumerate(each.titles)
        ]
        lines = table(columns, each.rows, indent=_INDENT)
        blocks.append([*lines, *([f"{'':{_INDENT}}{each.rest}"] if each.rest else [])])
    if line := _steps(difference):
        blocks.insert(2, [shorten(printable(line), WIDTH_MAX)])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


def _wrapped(line: str) -> list[str]:
    """Divide a line where it is too wide, and shorten words that are."""
    words = [shorten(word, WIDTH_MAX - _INDENT) for word in line.split(" ")]
    found = [words[0]]
    for word in words[1:]:
        if display_width(f"{found[-1]} {word}") <= WIDTH_MAX:
            found[-1] += f" {word}"
        else:
            found.append(f"{'':{_INDENT}}{word}")
    return found


def markdown_of(difference: PlanDifference) -> str:
    """Describe a difference in Markdown tables."""
    first, *others = _headline(difference)
    lines = [f"**{_cell(first)}**", "", *(f"{_cell(line)}  " for line in others), ""]
    if line := _steps(difference):
        lines += [_cell(line), ""]
    for each in _tables(difference):
        lines.append("| " + " | ".join(each.titles) + " |")
        rule = [" ---: " if i >= each.numbers_from else " --- " for i in range(len(each.titles))]
        lines.append("|" + "|".join(rule) + "|")
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in each.rows]
        lines += ["", *([each.rest, ""] if each.rest else [])]
    return "\n".join(lines)


def html_of(difference: PlanDifference) -> str:
    """Describe a difference in HTML tables, for a notebook."""
    first, *others = _headline(difference)
    parts = [f"<p><b>{escape(first)}</b><br>" + "<br>".join(map(escape, others)) + "</p>"]
    for each in _tables(difference):
        head = "".join(f"<th>{escape(title)}</th>" for title in each.titles)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(printable(cell))}</td>" for cell in row) + "</tr>"
            for row in each.rows
        )
        parts.append(f"<table><tr>{head}</tr>{rows}</table>")
    return "".join(parts)


def _headline(difference: PlanDifference) -> list[str]:
    old, new = difference.old, difference.new
    change = difference.change_bytes
    lines = [f"{signed(change)} peak memory: {old.title} to {new.title}"]
    share = f", {change / old.peak_bytes:+.2%}" if old.peak_bytes else ""
    lines.append(
        f"{format_bytes(old.peak_bytes)} ({old.peak_bytes:,} bytes) to "
        f"{format_bytes(new.peak_bytes)} ({new.peak_bytes:,} bytes){share if change else ''}"
    )
    if difference.cause is None:
        lines.append("Nothing differs at the peak.")
    else:
        lines.append(f"Mostly {signed(difference.cause.change_bytes)}: {difference.cause.text}")
    for name, (before, after) in difference.keys.items():
        lines.append(f"Planned with {name} {after or 'unset'} instead of {before or 'unset'}")
    return lines


def _steps(difference: PlanDifference) -> str:
    if difference.step_old < 0 or difference.step_new < 0:
        return ""
    old, new = (
        _step(difference.old, difference.step_old),
        _step(difference.new, difference.step_new),
    )
    return f"Arenas compared at {old} and {new}"


def _step(picture: Picture, index: int) -> str:
    step = picture.steps[index]
    return f"step {index} of {len(picture.steps)}, {step.operator} {shorten(step.name, 24)}"


def _tables(difference: PlanDifference) -> list[_Table]:
    found = [_parts(difference)]
    if difference.changes:
        found.append(_changes(difference.changes))
        for title, sums in (
            ("by module", difference.by_module()), ("by operator", difference.by_operator()),
        ):  # fmt: skip
            if sums:
                found.append(_sums(title, sums))
    return found


def _parts(difference: PlanDifference) -> _Table:
    rows = [
        [part, format_bytes(old), format_bytes(new), signed(new - old)]
        for part, (old, new) in difference.parts.items()
    ]
    return _Table(("part", "old", "new", "change"), rows, 1)


def _changes(changes: Sequence[Change]) -> _Table:
    rows = [
        [
            change.name or _UNNAMED.get(change.kind, change.part),
            f"{change.kind}: {change.why}",
            format_bytes(change.old_bytes),
            format_bytes(change.new_bytes),
            signed(change.change_bytes),
        ]
        for change in changes[:_SHOWN]
    ]
    rest = changes[_SHOWN:]
    text = f"… and {len(rest)} smaller, {signed(sum(c.change_bytes for c in rest))}" if rest else ""
    return _Table(("what moved the peak", "why", "old", "new", "change"), rows, 2, text)


def _sums(title: str, sums: dict[str, int]) -> _Table:
    rows = [[name, signed(size)] for name, size in [*sums.items()][:_SUMS_SHOWN]]
    rest = [*sums.values()][_SUMS_SHOWN:]
    text = f"… and {len(rest)} more, {signed(sum(rest))}" if rest else ""
    return _Table((title, "change"), rows, 1, text)


def _cell(text: str) -> str:
    """Return text that a cell of Markdown shows as it is: names may hold bars and stars."""
    return "".join(f"\\{c}" if c in "|*_<>[]" else c for c in printable(text))
