"""Statuses, priorities and the fixed numbers of the specification."""

import enum

from tightship.errors import DriverError


class ErrorStatus(enum.IntEnum):
    """What a call ended with; the values are those of NNAPI."""

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
    """Among the models of one client; says nothing about other clients."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class ExecutionPreference(enum.IntEnum):
    """What a model is prepared for."""

    LOW_POWER = 0
    FAST_SINGLE_ANSWER = 1
    SUSTAINED_SPEED = 2


EXHAUSTED = (MemoryError, OSError, ImportError)
"""What is raised where memory or descriptors are short. `ImportError` by who finds a module that
another thread could read half of: what a driver has is imported when it is first needed."""

NO_TIME = -1
"""No deadline, no duration, not measured: nanoseconds are at least 0 otherwise."""

LOOP_TIMEOUT_DEFAULT_NS = 2_000_000_000
LOOP_TIMEOUT_MAX_NS = 15_000_000_000
CACHE_TOKEN_BYTES = 32
CACHE_FILES_MAX = 32
COPIED_CONSTANT_BYTES_MAX = 128
"""A client copies constants up to this size into the message; larger ones go into a pool."""
REQUEST_ALIGNMENT_BYTES = 64
REQUEST_PADDING_BYTES = 64


def invalid(message: str) -> DriverError:
    """An error for a call that breaks a rule."""
    return DriverError(message, status=ErrorStatus.INVALID_ARGUMENT)


def failure(message: str) -> DriverError:
    """An error for a call that keeps the rules and cannot be served."""
    return DriverError(message, status=ErrorStatus.GENERAL_FAILURE)
