"""Finds the argument of a failed call whose type its function does not take.

Functions do not check types: a call that fails with a bare error is looked at afterwards, by the
annotations of its parameters. An annotation that cannot be evaluated here matches everything.
"""

import operator
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature, unwrap
from itertools import islice
from os import PathLike
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

ELEMENTS_MAX = 64
"""Elements of a container that are looked at."""
SHOWN_MAX = 60
"""Characters of a value that a message shows."""
HOMES = ("tightship.types", "tightship.graph", "tightship.planner", "tightship")
"""Modules in which names of annotations are looked up that are imported for checkers of types."""


def wrong_argument(
    function: Callable[..., object], arguments: tuple[object, ...], named: Mapping[str, object]
) -> str | None:
    """Describe the first argument of a call that does not match its annotation.

    Returns:
        A message with the parameter, the value and what is taken instead; None if all match, or the
            call has other parameters than the function.
    """
    inner = unwrap(function)
    try:
        bound = signature(inner).bind(*arguments, **named)
    except (TypeError, ValueError):
        return None
    names = _Names(vars(sys.modules.get(inner.__module__, sys)))
    for name, value in bound.arguments.items():
        parameter = bound.signature.parameters[name]
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        wanted = names.evaluated(parameter.annotation)
        if name != "self" and not _matches(value, wanted):
            shown = repr(value)
            shown = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"
            kind = type(value).__name__
            return f"`{name}` is {shown}, a `{kind}`; give {_described(parameter.annotation)}."
    return None


class _Names(dict[str, Any]):
    """Names of a module, and public ones of the package for those that it lacks."""

    def __missing__(self, name: str) -> object:
        for home in HOMES:
            if name in getattr(import_module(home), "__all__", ()):
                return getattr(import_module(home), name)
        raise KeyError(name)

    def evaluated(self, annotation: object) -> object:
        """Evaluate an annotation that is a text; `Any` if that fails."""
        if annotation is signature(_Names.evaluated).empty:
            return Any
        if not isinstance(annotation, str):
            return annotation
        try:
            return eval(annotation, {}, self)
        except Exception:  # noqa: BLE001 - of a framework that is not imported
            return Any


def _matches(value: object, wanted: object) -> bool:  # noqa: PLR0911 - a case for each form
    """Whether a value is of an annotated type; unknown kinds of annotations match."""
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return any(_matches(value, each) for each in inner)
    if origin is Literal:
        return value in inner if isinstance(value, str | int) else False
    if wanted is None or wanted is NoneType:
        return value is None
    if wanted in (int, float):
        return _is_number(value, operator.index if wanted is int else float)
    if origin is not None:
        return _is_container(value, origin, inner)
    if not isinstance(wanted, type) or isinstance(wanted, TypeVar):
        return True
    try:
        return isinstance(value, wanted)
    except TypeError:  # a protocol that cannot be asked
        return True


def _is_number(value: object, number_of: Callable[[Any], object]) -> bool:
    if isinstance(value, str | bytes):
        return False
    try:
        number_of(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_container(  # noqa: PLR0911 - a case for each form
    value: object, origin: object, inner: tuple[object, ...]
) -> bool:
    """Whether a value is a mapping, path, function or collection, with elements of inner types."""
    if origin is PathLike:
        return isinstance(value, PathLike)
    if origin is Callable:
        return callable(value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _matches(each, wanted)
            for item in islice(value.items(), ELEMENTS_MAX)
            for each, wanted in zip(item, inner, strict=False)
        )
    if not isinstance(origin, type) or origin.__module__ not in ("builtins", "collections.abc"):
        return not isinstance(origin, type) or isinstance(value, origin)
    if isinstance(value, str | bytes | Mapping) or not hasattr(value, "__iter__"):
        return False
    if not hasattr(value, "__len__") or (origin is tuple and inner[1:] != (...,)):
        return True
    return all(_matches(each, inner[0]) for each in islice(iter(value), ELEMENTS_MAX))


def _described(annotation: object) -> str:
    """Write an annotation as a reader of the reference sees it."""
    text = annotation if isinstance(annotation, str) else None
    if text is None:
        text = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    for prefix in ("collections.abc.", "typing.", "os."):
        text = text.replace(prefix, "")
    text = text.replace("NoneType", "None")
    return f"`{text}`" if len(text) <= SHOWN_MAX else "what the reference names"
