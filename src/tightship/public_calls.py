"""Shortens tracebacks of public calls, so that an error points at the caller's line.

Set `TIGHTSHIP_TRACEBACK=full` in the environment to keep all frames, as when you look for a defect
in the package itself. Errors that the package does not raise deliberately always keep all frames.
"""

import os
from collections.abc import Callable
from functools import wraps
from inspect import isfunction, isgeneratorfunction
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from tightship.errors import InputTypeError, OutOfMemoryError, TightshipError

VARIABLE = "TIGHTSHIP_TRACEBACK"
P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

_LIBRARY = os.path.join(os.path.dirname(os.__file__), "")
_INSTALLED = os.path.join(_LIBRARY, "site-packages", "")
_RENAMING = "tightship.deprecated"
_OPERATORS = ("__call__", "__enter__", "__getitem__", "__init__", "__iter__", "__setitem__")


def shorten(error: BaseException) -> None:
    """Remove the frames of Tightship and of Python's library from an error and from its causes.

    Frames of other code stay, such as those of a function that was given to Tightship and that it
    calls. The error is changed only if it is a `TightshipError`, names a file, or is a `TypeError`
    of the call itself, as for an argument too many.

    Args:
        error: The error, whose traceback is replaced in place.
    """
    if os.environ.get(VARIABLE) == "full":
        return
    found: BaseException | None = error
    traceback = error.__traceback__
    is_of_call = isinstance(error, TypeError) and traceback is not None and _is_only(traceback)
    if (
        is_of_call
        or isinstance(error, TightshipError)
        or getattr(error, "filename", None) is not None
    ):
        while found is not None:
            found.__traceback__ = _outside(found.__traceback__)
            found = found.__cause__


def public_call(function: Callable[P, R], doing: str | None = None) -> Callable[P, R]:
    """Wrap a function so that its errors have short tracebacks and name a wrong argument.

    A function that is wrapped already stays as it is. Types of arguments are looked at only after a
    bare error, such as a `TypeError` from within.

    Args:
        function: The function.
        doing: What it does, as for `explains_memory`; None leaves a `MemoryError` as it is.
    """

    @wraps(function)
    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except (TightshipError, OSError) as error:
            shorten(error)
            raise  # a bare `raise` does not add this frame to the traceback again
        except MemoryError as error:
            if doing is None:
                raise
            said = str(error).strip().rstrip(".")
            raise OutOfMemoryError(
                f"There was not enough memory for {doing}{said and f': {said}'}. "
                "Raise the process's memory limit, or free some.",
                requested_bytes=-1,
            ) from error
        except Exception as error:
            wrong = _wrong_argument(function, arguments, named)
            if wrong is None:
                shorten(error)
                raise
            explained = InputTypeError(wrong)
            shorten(explained)
            raise explained from error

    is_wrapped = getattr(function, "__code__", None) is getattr(call, "__code__", call)
    return function if is_wrapped else call


def _wrong_argument(
    function: Callable[..., object], arguments: tuple[object, ...], named: dict[str, object]
) -> str | None:
    """Describe an argument of the wrong type that may have made a call fail."""
    from tightship.wrong_arguments import wrong_argument  # few calls fail

    return wrong_argument(function, arguments, named)


def explains_memory(doing: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Wrap a public call so that it raises every `MemoryError` within as an `OutOfMemoryError`.

    Python, NumPy and oneDNN allocate, too, and say little or nothing of it. Other errors are raised
    as `public_call` raises them.

    Args:
        doing: What the function does: `loading a model`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        return public_call(function, doing)

    return decorate


def public_methods(cls: type[C]) -> type[C]:
    """Wrap a class's public methods and properties so that their errors have short tracebacks."""
    for name, member in vars(cls).copy().items():
        if name.startswith("_") and name not in _OPERATORS:
            continue
        if isinstance(member, property) and member.fget is not None:
            setattr(cls, name, member.getter(public_call(member.fget)))
        elif isinstance(member, (classmethod, staticmethod)):
            setattr(cls, name, type(member)(public_call(member.__func__)))
        elif isfunction(member) and not isgeneratorfunction(member):
            setattr(cls, name, public_call(member))
    return cls


def _outside(traceback: TracebackType | None) -> TracebackType | None:
    """Copy a traceback without the entries of Tightship and of Python's library."""
    kept = []
    while traceback is not None:
        if not _is_inner(traceback.tb_frame):
            kept.append(traceback)
        traceback = traceback.tb_next
    shortened = None
    for each in reversed(kept):
        shortened = TracebackType(shortened, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return shortened


def _is_only(traceback: TracebackType) -> bool:
    """Whether a call failed by its own arguments, perhaps after old parameters were renamed."""
    following = traceback.tb_next
    if following is not None and following.tb_frame.f_globals.get("__name__") == _RENAMING:
        following = following.tb_next
    return following is None


def _is_inner(frame: FrameType) -> bool:
    """Whether a frame belongs to Tightship (generated constructors too) or Python's library."""
    file, module = frame.f_code.co_filename, frame.f_globals.get("__name__", "")
    is_library = file.startswith(_LIBRARY) and not file.startswith(_INSTALLED)
    return is_library or file.startswith("<frozen ") or f"{module}.".startswith("tightship.")
