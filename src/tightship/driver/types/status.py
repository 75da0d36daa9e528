"""Statuses, priorities and constants of the specification."""

import enum

from tightship.errors import DriverError


class ErrorStatus(enum.IntEnum):
    """Results of a call, with NNAPI's values."""

    NONE = 0
    DEVICE_UNAVAILABLE = 1
    GENERAL_FAILURE = 2
    OUTPUT_INSUFFICIENT_SIZE = 3
    INVALID_ARGUMENT = 4
    MISSED_DEADLINE_TRANSIENT = 5
    MISSED_DEADLINE_PERSISTENT = 6
    RESOURCE_EXHAUSTED_TRANSIENT = 7
    RESOURCE_EXHAUSTED_PERSISTENT = 8


class Priority(enum.IntEnum):
    """Priority of a model among those of the same client."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class ExecutionPreference(enum.IntEnum):
    """Purposes for which a model is prepared."""

    LOW_POWER = 0
    FAST_SINGLE_ANSWER = 1
    SUSTAINED_SPEED = 2


EXHAUSTED = (MemoryError, OSError, ImportError)
"""Exceptions raised where memory or descriptors run out.

`ImportError` is one because modules are imported on first use: if memory or descriptors run out
meanwhile, another thread finds a partly initialized module.
"""

NO_TIME = -1
"""Stands for no deadline, no duration or no measurement; other times are at least 0."""

LOOP_TIMEOUT_DEFAULT_NS = 2_000_000_000
LOOP_TIMEOUT_MAX_NS = 15_000_000_000
CACHE_TOKEN_BYTES = 32
COPIED_CONSTANT_BYTES_MAX = 128
"""Size up to which a client copies constants into the message; larger ones go into a pool."""
REQUEST_ALIGNMENT_BYTES = 64


def invalid(message: str) -> DriverError:
    """Return an error for a call that breaks a rule."""
    return DriverError(message, status=ErrorStatus.INVALID_ARGUMENT)


def failure(message: str) -> DriverError:
    """Return an error for a call that obeys the rules but cannot be served."""
    return DriverError(message, status=ErrorStatus.GENERAL_FAILURE)
