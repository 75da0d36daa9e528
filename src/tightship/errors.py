"""Exceptions: one class for each decision that a caller can take.

TightshipError
├── GraphError            the model is not a valid graph, or cannot be typed
├── FormatError           a file is not what its name says
├── InputError            names, dtypes, shapes or options given by the caller do not fit
│   └── InputTypeError    an argument is of a type that the call does not take
├── PlanError
│   ├── CapacityError     proved not to fit (also a MemoryError)
│   └── InvalidPlanError  a plan that would corrupt memory
├── OutOfMemoryError      memory could not be obtained, or a byte bound was reached
├── DeadlineError         a run was stopped at its deadline
├── StoppedError          a run was stopped because its stop flag was set
├── DriverError           a call to the driver process ended with a status other than NONE
└── LibraryError          oneDNN, its runtime or a device's driver cannot be used
"""

import sys
import warnings
from functools import partial
from typing import ClassVar

__all__ = [
    "CapacityError",
    "DeadlineError",
    "DriverError",
    "FormatError",
    "GraphError",
    "InputError",
    "InputTypeError",
    "InvalidPlanError",
    "LibraryError",
    "OutOfMemoryError",
    "PlanError",
    "StoppedError",
    "TightshipError",
]
_PACKAGE = f"{__package__}."


class TightshipError(Exception):
    """Base of all errors that Tightship raises deliberately; other processes can receive them."""

    _numbers: ClassVar[tuple[str, ...]] = ()
    """Attributes that the constructor takes by keyword."""

    def __reduce__(self) -> tuple[object, ...]:
        numbers = {name: getattr(self, name) for name in self._numbers}
        return partial(type(self), **numbers), self.args, dict(vars(self))


class GraphError(TightshipError):
    """A model is not a valid graph, or its types cannot be inferred."""


class FormatError(TightshipError, ValueError):
    """A file does not hold what its name or its header says."""


class InputError(TightshipError, ValueError):
    """An argument does not fit: a name, dtype, shape or option the caller gave."""


class InputTypeError(InputError, TypeError):
    """An argument is of a type that the call does not take."""


class PlanError(TightshipError):
    """No valid plan exists, or a plan must not be used."""


class CapacityError(PlanError, MemoryError):
    """A request is proved not to fit its limit.

    Attributes:
        needed_bytes: The smallest capacity that is known to suffice.
        limit_bytes: The capacity that was given.
    """

    _numbers = ("needed_bytes", "limit_bytes")

    def __init__(self, message: str, *, needed_bytes: int, limit_bytes: int) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes
        self.limit_bytes = limit_bytes


class InvalidPlanError(PlanError, ValueError):
    """A plan gives two live buffers the same bytes, or puts a buffer outside its arena."""


class OutOfMemoryError(TightshipError, MemoryError):
    """Memory could not be obtained.

    Attributes:
        requested_bytes: Size of the request that failed, or -1 if it is unknown.
        available_bytes: Bytes that were still available, or -1 if the amount is unknown.
    """

    _numbers = ("requested_bytes", "available_bytes")

    def __init__(self, message: str, *, requested_bytes: int, available_bytes: int = -1) -> None:
        super().__init__(message)
        self.requested_bytes = requested_bytes
        self.available_bytes = available_bytes


class DeadlineError(TightshipError, TimeoutError):
    """A run reached its deadline and was stopped between two steps."""


class StoppedError(TightshipError):
    """A run was stopped between two steps because its stop flag was set."""


class DriverError(TightshipError):
    """A call to a driver process breaks one of the driver's rules, or cannot be served.

    Attributes:
        status: An `ErrorStatus` of NNAPI, never 0.
    """

    _numbers = ("status",)

    def __init__(self, message: str, *, status: int) -> None:
        super().__init__(message)
        self.status = status


class LibraryError(TightshipError, ImportError):
    """oneDNN, a runtime it needs, or a device's driver is missing or cannot be used."""


def warn_caller(text: str, category: type[Warning] = RuntimeWarning) -> None:
    """Issue a warning at the line outside this package that led to the call.

    Args:
        text: The warning.
        category: Its class.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_inner(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _is_inner(module: object) -> bool:
    return f"{module}.".startswith(_PACKAGE)
