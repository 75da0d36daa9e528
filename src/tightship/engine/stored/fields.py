"""Values of a file that nobody has vouched for, read by type and range."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Value = TypeVar("Value")

INTEGER_MAX = 1 << 46
"""No amount in a file is larger: 64 TiB."""


class MalformedError(ValueError):
    """A value is not what its place in the file needs."""


def integer(value: object, least: int = 0, most: int = INTEGER_MAX) -> int:
    """A whole number within `[least, most]`."""
    if type(value) is not int or not least <= value <= most:
        raise MalformedError(f"a number is {value!r:.40}; it must be from {least} to {most}")
    return value


def index(value: object, count: int) -> int:
    """A place in a list of `count`."""
    return integer(value, 0, count - 1)


def text(value: object) -> str:
    """A string."""
    if type(value) is not str:
        raise MalformedError(f"{value!r:.40} stands where text must")
    return value


def flag(value: object) -> bool:
    """True or false."""
    if type(value) is not bool:
        raise MalformedError(f"{value!r:.40} stands where true or false must")
    return value


def items(value: object, count: int | None = None) -> Sequence[object]:
    """A list, of `count` elements where that is given."""
    if type(value) is not list or (count is not None and len(value) != count):
        raise MalformedError(f"{value!r:.40} stands where a list must")
    return value


def integers(value: object, least: int = 0, most: int = INTEGER_MAX) -> tuple[int, ...]:
    """A list of whole numbers."""
    return tuple([integer(each, least, most) for each in items(value)])


def indices(value: object, count: int) -> tuple[int, ...]:
    """Places in a list of `count`."""
    return integers(value, 0, count - 1)


def each(value: object, read: Callable[[object], Value]) -> list[Value]:
    """A list of what `read` reads."""
    return [read(element) for element in items(value)]


def record(value: object, *names: str) -> list[object]:
    """The values of an object that has these members and no others, in their order."""
    if type(value) is not dict or set(value) != set(names):
        raise MalformedError(f"an object does not have the members {', '.join(names)}")
    return [value[name] for name in names]


def texts(value: object) -> dict[str, str]:
    """An object whose members are strings."""
    if type(value) is not dict:
        raise MalformedError(f"{value!r:.40} stands where an object must")
    return {text(name): text(member) for name, member in value.items()}


def amounts(value: object) -> dict[str, int]:
    """An object whose members are whole numbers."""
    if type(value) is not dict:
        raise MalformedError(f"{value!r:.40} stands where an object must")
    return {text(name): integer(member) for name, member in value.items()}
