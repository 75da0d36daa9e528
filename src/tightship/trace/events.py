"""Reads and writes allocation traces: sizes of blocks in the order of their events.

A trace file is JSON lines, a head and then an event a line:

    {"format": "tightship-trace", "version": 1}
    {"allocate": 1, "size_bytes": 5024}
    {"deallocate": 1}

A number names one block while it lives, and may be reused afterwards. The second form that can be
read is one JSON array of pairs: `[number, size]` allocates, `[-number, size]` deallocates.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from tightship.errors import FormatError
from tightship.public_calls import public_call

FORMAT = "tightship-trace"
VERSION = 1
FIELDS = ({"allocate", "size_bytes"}, {"deallocate"})
INT64_MAX = 2**63 - 1
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Event:
    """An allocation of `size_bytes`, or a deallocation, whose `size_bytes` is 0."""

    number: int
    size_bytes: int
    is_allocation: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """Events in order; each deallocation follows the allocation of its block."""

    events: tuple[Event, ...]


@public_call
def read_trace(path: Path) -> Trace:
    """Read a trace in either form.

    Raises:
        FormatError: The content is not JSON or has another format or version, a field is missing,
            unknown or out of range, or a block is allocated twice or deallocated without having
            been allocated. The message names the line, or the index of the pair.
        OSError: The file cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(f"`{path}` is not UTF-8: {error}.") from error
    is_list = text.lstrip()[:1] == "["
    live: dict[int, int] = {}
    events = []
    for where, event, expected in _pairs(path, text) if is_list else _lines(path, text):
        if event.is_allocation == (event.number in live):
            what = "allocated twice" if event.is_allocation else "deallocated, but not allocated"
            raise FormatError(f"{where}: block {event.number} is {what}.")
        if event.is_allocation:
            live[event.number] = event.size_bytes
        elif live.pop(event.number) != expected and expected is not None:
            raise FormatError(f"{where}: block {event.number} was allocated with another size.")
        events.append(event)
    return Trace(tuple(events))


def trace_text(trace: Trace) -> str:
    """Write a trace in the form that `read_trace` reads."""
    lines: list[dict[str, object]] = [{"format": FORMAT, "version": VERSION}]
    for event in trace.events:
        if event.is_allocation:
            lines.append({"allocate": event.number, "size_bytes": event.size_bytes})
        else:
            lines.append({"deallocate": event.number})
    return "".join(json.dumps(line) + "\n" for line in lines)


_Located = tuple[str, Event, int | None]
"""Position of an event in messages, the event, and the size that a deallocation states."""


def _lines(path: Path, text: str) -> Iterator[_Located]:
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if not lines or _json(f"`{path}`, line 1", lines[0][1]) != {
        "format": FORMAT,
        "version": VERSION,
    }:
        raise FormatError(
            f"`{path}` is not a trace: its first line must be "
            f'{{"format": "{FORMAT}", "version": {VERSION}}}.'
        )
    for number, line in lines[1:]:
        where = f"`{path}`, line {number}"
        raw = _json(where, line)
        if not isinstance(raw, dict) or set(raw) not in (
            {"allocate", "size_bytes"},
            {"deallocate"},
        ):
            raise FormatError(
                f"{where}: {line.strip()[:_SHOWN]} is not an event; write `allocate` and "
                "`size_bytes`, or `deallocate`."
            )
        for field, value in raw.items():
            _check(f"{where}, `{field}`", value)
        if "allocate" in raw:
            yield where, Event(raw["allocate"], raw["size_bytes"], is_allocation=True), None
        else:
            yield where, Event(raw["deallocate"], 0, is_allocation=False), None


def _pairs(path: Path, text: str) -> Iterator[_Located]:
    pairs = _json(f"`{path}`", text)
    assert isinstance(pairs, list)
    for index, pair in enumerate(pairs):
        where = f"`{path}`, pair {index}"
        if not isinstance(pair, list) or len(pair) != 2:
            raise FormatError(f"{where}: {json.dumps(pair)[:_SHOWN]} is not a pair of integers.")
        number, size = pair
        if type(number) is not int or number == 0:
            raise FormatError(
                f"{where}: {json.dumps(number)[:_SHOWN]} is not a block; use an integer except 0."
            )
        _check(f"{where}, block", abs(number))
        _check(f"{where}, size", size)
        if number > 0:
            yield where, Event(number, size, is_allocation=True), None
        else:
            yield where, Event(-number, 0, is_allocation=False), size


def _check(where: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= INT64_MAX:
        raise FormatError(
            f"{where}: {json.dumps(value)[:_SHOWN]} is not an integer in [0, {INT64_MAX}]."
        )


def _json(where: str, text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{where} is not JSON: {error}.") from error


def _refuse(name: str) -> NoReturn:
    raise FormatError(f"`{name}` is not JSON")
