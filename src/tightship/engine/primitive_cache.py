"""Cache of compiled primitives, shared by all programs of the process: bounds and statistics."""

import functools
import os

from tightship import _core
from tightship._core import PrimitiveCache, PrimitiveCacheStatistics
from tightship.errors import InputError, LibraryError
from tightship.public_calls import public_call
from tightship.quantity import parse_bytes

VARIABLE = "TIGHTSHIP_PRIMITIVE_CACHE_CAPACITY"
BUDGET = "TIGHTSHIP_PRIMITIVE_POOL_BUDGET"
"""Most bytes of free pools that the process's cache keeps, and each model for unplanned steps."""
BUDGET_BYTES = 64 << 20
"""The same, unless the variable says otherwise."""


@public_call
def set_primitive_cache_capacity(entries: int, *, idle_bytes: int | str | None = None) -> None:
    """Bound the primitives that are kept for later programs; those beyond are released at once.

    A primitive stays as long as a program uses it, whatever the bounds.

    Args:
        entries: Most primitives kept, used or not; 0 keeps none. The default is
            `TIGHTSHIP_PRIMITIVE_CACHE_CAPACITY`, else 1024.
        idle_bytes: Most bytes of primitives that no program uses; None leaves the bound as it is, 1
            MiB at first.

    Raises:
        InputError: A number is negative.
        LibraryError: The package was built without oneDNN.
    """
    cache = process_cache()
    cache.set_capacity(entries, cache.idle_bytes if idle_bytes is None else idle_bytes)


def get_primitive_cache_capacity() -> int:
    """Return the most primitives that are kept, used or not; 0 keeps none.

    Raises:
        LibraryError: The package was built without oneDNN.
    """
    return process_cache().entries


def primitive_cache_statistics() -> PrimitiveCacheStatistics:
    """Count primitives found, compiled and released since the process began, and those held.

    Raises:
        LibraryError: The package was built without oneDNN.
    """
    return process_cache().statistics()


def release_idle_primitives() -> int:
    """Release primitives that no program uses, and free pools; return the estimated bytes."""
    if not _core.HAS_ONEDNN:
        return 0
    cache = process_cache()
    return cache.release_idle() + cache.pools.trim()


def process_cache() -> PrimitiveCache:
    """Return the cache of the process; the first call reads the environment.

    Raises:
        InputError: `TIGHTSHIP_PRIMITIVE_CACHE_CAPACITY` is not a number of primitives, or
            `TIGHTSHIP_PRIMITIVE_POOL_BUDGET` is not an amount of memory.
        LibraryError: The package was built without oneDNN.
    """
    if not _core.HAS_ONEDNN:
        raise LibraryError("Primitives cannot be cached: tightship was built without oneDNN.")
    _look_at_environment()
    return _core.primitive_cache()


def pool_budget_bytes() -> int:
    """Return the bytes of free pools that the environment allows.

    Raises:
        InputError: `TIGHTSHIP_PRIMITIVE_POOL_BUDGET` is not an amount of memory.
    """
    text = os.environ.get(BUDGET)
    return BUDGET_BYTES if text is None else parse_bytes(text, BUDGET, least=0)


@functools.cache
def _look_at_environment() -> None:
    cache = _core.primitive_cache()
    text = os.environ.get(VARIABLE)
    if text is not None:
        if not text.strip().isdecimal():
            raise InputError(
                f"`{VARIABLE}` (= `{text}`) must be a number of primitives, 0 or more."
            )
        cache.set_capacity(int(text), cache.idle_bytes)
    cache.pools.budget_bytes = pool_budget_bytes()
