"""Chooses an implementation of a primitive that is fast and keeps to its scratchpad."""

from collections.abc import Callable

from tightship._core import OneDnnError, PrimitiveDesc

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
