"""Reads untrusted values of a file, checking type and range."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Value = TypeVar("Value")

INTEGER_MAX = 1 << 46
"""Largest amount accepted in a file: 64 TiB."""


class MalformedError(ValueError):
    """Value of a file that has the wrong type or range."""


def integer(value: object, least: int = 0, most: int = INTEGER_MAX) -> int:
    """Read a whole number within `[least, most]`."""
    if type(value) is not int or not least <= value <= most:
        raise MalformedError(f"a number is {value!r:.40}; it must be from {least} to {most}")
    return value


def index(value: object, count: int) -> int:
    """Read an index into a list of `count`."""
    return integer(value, 0, count - 1)


def text(value: object) -> str:
    """Read a string."""
    if type(value) is not str:
        raise MalformedError(f"{value!r:.40} is not text")
    return value


def flag(value: object) -> bool:
    """Read a truth value."""
    if type(value) is not bool:
        raise MalformedError(f"{value!r:.40} is not true or false")
    return value


def items(value: object, count: int | None = None) -> Sequence[object]:
    """Read a list, of `count` elements if given."""
    if type(value) is not list or (count is not None and len(value) != count):
        raise MalformedError(f"{value!r:.40} is not a list of the expected length")
    return value


def integers(value: object, least: int = 0, most: int = INTEGER_MAX) -> tuple[int, ...]:
    """Read a list of whole numbers within `[least, most]`."""
    found = items(value)
    for each in found:
        if type(each) is not int or not least <= each <= most:
            integer(each, least, most)
    return tuple(found)  # type: ignore[arg-type]  # all are whole numbers


def columns(value: object, count: int) -> list[list[object]]:
    """Read a list of lists of `count` elements; return the first elements of all, and so on."""
    rows = items(value)
    for row in rows:
        if type(row) is not list or len(row) != count:
            items(row, count)
    if not rows:
        return [[] for _ in range(count)]
    return [list(column) for column in zip(*rows, strict=True)]


def indices(value: object, count: int) -> tuple[int, ...]:
    """Read a list of indices into a list of `count`."""
    return integers(value, 0, count - 1)


def each(value: object, read: Callable[[object], Value]) -> list[Value]:
    """Read a list with `read` for each element."""
    return [read(element) for element in items(value)]


def record(value: object, *names: str) -> list[object]:
    """Read an object with exactly these members; return their values in this order."""
    if type(value) is not dict or set(value) != set(names):
        raise MalformedError(f"an object does not have the members {', '.join(names)}")
    return [value[name] for name in names]


def texts(value: object) -> dict[str, str]:
    """Read an object whose members are strings."""
    if type(value) is not dict:
        raise MalformedError(f"{value!r:.40} is not an object")
    return {text(name): text(member) for name, member in value.items()}


def amounts(value: object) -> dict[str, int]:
    """Read an object whose members are whole numbers."""
    if type(value) is not dict:
        raise MalformedError(f"{value!r:.40} is not an object")
    return {text(name): integer(member) for name, member in value.items()}
