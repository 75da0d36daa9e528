"""Chooses an implementation of a primitive that is fast and keeps to its scratchpad."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from tightship._core import OneDnnError, PrimitiveDesc
from tightship.engine.kernels.kernel_context import NotCoveredError

T = TypeVar("T")

SLOW = frozenset({"ref", "gemm"})
"""Implementations to avoid: `ref` is 100 to 1000 times slower, `gemm` allocates megabytes."""


def is_slow(implementation: str) -> bool:
    """Whether an implementation, such as `x64:gemm:jit`, is one to avoid."""
    return not SLOW.isdisjoint(implementation.split(":"))


def fast(create: Callable[[], PrimitiveDesc]) -> PrimitiveDesc | None:
    """Describe a primitive with its first implementation that is not slow; None if all are."""
    try:
        desc = create()
    except OneDnnError:
        return None
    while is_slow(desc.implementation):
        if not desc.next_implementation():
            return None
    return desc


def first_fast(
    candidates: Iterable[T], create: Callable[[T], PrimitiveDesc]
) -> tuple[T, PrimitiveDesc]:
    """Return the first of the candidates that a primitive is fast for, and the primitive.

    Raises:
        NotCoveredError: There is none.
    """
    for each in candidates:
        desc = fast(partial(create, each))
        if desc is not None:
            return each, desc
    raise NotCoveredError
