"""Which implementation of a primitive is good enough to plan with."""

from collections.abc import Callable

from tightship._core import OneDnnError, PrimitiveDesc

SLOW = frozenset({"ref", "gemm"})
"""`ref` is 100 to 1000 times slower; `gemm` takes megabytes outside its scratchpad."""


def is_slow(implementation: str) -> bool:
    """Whether an implementation, as in `x64:gemm:jit`, is one to avoid."""
    return not SLOW.isdisjoint(implementation.split(":"))


def fast(create: Callable[[], PrimitiveDesc]) -> PrimitiveDesc | None:
    """The first implementation that is neither slow nor takes memory of its own, if any."""
    try:
        desc = create()
    except OneDnnError:
        return None
    while is_slow(desc.implementation):
        if not desc.next_implementation():
            return None
    return desc
