"""Spellings of earlier versions: each still works, with a warning, until the version in its row.

`RENAMED` is the only table. In Python a `DeprecationWarning` points at the caller's line; the
command line writes a `FutureWarning` to standard error.
"""

from collections.abc import Callable, Collection
from functools import wraps
from typing import Literal, NamedTuple, ParamSpec, TypeVar

from tightship.errors import InputError, warn_caller

P = ParamSpec("P")
R = TypeVar("R")
Kind = Literal["pass", "policy", "root", "name", "attribute", "parameter", "command"]


class Renamed(NamedTuple):
    """A spelling that was replaced.

    Attributes:
        kind: Kind of word, which decides where the old one is accepted.
        old: The old spelling.
        new: The one that replaced it.
        where: Module of a name, class of an attribute, function or class of a parameter; otherwise
            empty.
        until: Version that no longer has the old spelling.
    """

    kind: Kind
    old: str
    new: str
    where: str = ""
    until: str = "0.3"


RENAMED: tuple[Renamed, ...] = (
    Renamed("command", "tightship plan BUFFERS", "tightship place BUFFERS"),
    Renamed("name", "plan_schedule", "place_schedule", "tightship.planner"),
    Renamed("name", "solve", "place", "tightship.planner"),
    Renamed("name", "SeedVirtualResource", "ChunkedVirtualResource", "tightship.resource.virtual"),
    Renamed("attribute", "load_bytes", "live_bytes", "PlannedStep"),
    Renamed("attribute", "load_bytes", "live_bytes", "Problem"),
    Renamed("parameter", "axis", "classes_axis", "with_cross_entropy"),
    Renamed("parameter", "growth_bytes", "chunk_bytes", "pool"),
    Renamed("parameter", "idle_seconds", "idle_s", "StealingVirtualResource"),
    Renamed("parameter", "maximum_bytes", "max_bytes", "pool"),
    Renamed("parameter", "path", "socket", "Client"),
    Renamed("parameter", "path", "socket", "FallbackModel"),
    Renamed("parameter", "patience_seconds", "patience_s", "StealingVirtualResource"),
    Renamed("parameter", "region_bytes", "size_bytes", "divide"),
    Renamed("parameter", "target", "labels", "with_cross_entropy"),
    Renamed("parameter", "target", "labels", "with_squared_error"),
    Renamed("parameter", "targets", "labels", "training_graph"),
    Renamed("policy", "seed", "chunked"),
    Renamed("root", "virtual_seed", "virtual_chunked"),
    Renamed("pass", "drop_repeats", "common_subexpressions"),
    Renamed("pass", "elide_delivery", "write_outputs_directly"),
    Renamed("pass", "join_activation", "recognize_activation"),
    Renamed("pass", "join_group_norm", "recognize_group_norm"),
    Renamed("pass", "join_normalization", "recognize_normalization"),
    Renamed("pass", "join_quantized", "recognize_quantized"),
    Renamed("pass", "join_rotary", "recognize_rotary"),
    Renamed("pass", "pieces", "tiles"),
    Renamed("pass", "turn_gradients", "transpose_gradients"),
)
"""Old spellings. A row is removed with the version that it names, and its use with it."""


def renamed(kind: Kind, old: str, where: str = "") -> Renamed | None:
    """Return the row of an old spelling; None for any other word."""
    known = (row for row in RENAMED if (row.kind, row.old, row.where) == (kind, old, where))
    return next(known, None)


def warn_of(row: Renamed, category: type[Warning] = DeprecationWarning) -> str:
    """Warn the caller of an old spelling, and return the one that replaced it."""
    of = f" of `{row.where}`" if row.where else ""
    warn_caller(
        f"The {row.kind} `{row.old}`{of} is now `{row.new}`; write that, because the old spelling "
        f"goes in version {row.until}.",
        category,
    )
    return row.new


def current(kind: Kind, word: str, category: type[Warning] = DeprecationWarning) -> str:
    """Return the present spelling of a word; an old one warns, and any other word is returned."""
    row = renamed(kind, word)
    return word if row is None else warn_of(row, category)


def current_passes(without: Collection[str]) -> tuple[str, ...]:
    """Return passes to leave out by their present names; old names warn.

    Raises:
        InputError: `without` is a text or has something that is not a text.
    """
    if isinstance(without, str) or not all(isinstance(name, str) for name in without):
        raise InputError(f"`without` is {without!r}; give a list of names of passes.")
    return tuple(current("pass", name) for name in without)


def old_attribute(owner: object, name: str) -> object:
    """Implement `__getattr__` of a class some of whose attributes have new names.

    Raises:
        AttributeError: The class never had the attribute.
    """
    where = type(owner).__name__
    row = renamed("attribute", name, where)
    if row is None:
        raise AttributeError(f"`{where}` object has no attribute `{name}`")
    return getattr(owner, warn_of(row))


def current_parameter(where: str, name: str) -> str:
    """Return the present name of a parameter that was given by an old one, with a warning.

    Raises:
        TypeError: The function never had such a parameter.
    """
    row = renamed("parameter", name, where)
    if row is None:
        raise TypeError(f"`{where}` has no parameter `{name}`")
    return warn_of(row)


def takes_old_parameters(where: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wrap a function so that parameters can be given by their old names.

    Args:
        where: Name of the function, or of the class whose constructor it is.
    """
    names = {row.old: row for row in RENAMED if (row.kind, row.where) == ("parameter", where)}

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*arguments: P.args, **named: P.kwargs) -> R:
            for old in names.keys() & named.keys():
                if names[old].new in named:
                    raise TypeError(
                        f"`{where}` got both `{old}` and `{names[old].new}`, which replaced it."
                    )
                named[warn_of(names[old])] = named.pop(old)
            return function(*arguments, **named)

        return call

    return decorate
