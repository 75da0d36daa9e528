"""Memory pool: blocks of any size from few large ones."""

from tightship._core import FreeListResource, LimitingResource, MemoryResource
from tightship.errors import InputError
from tightship.public_calls import public_call

GROWTH_BYTES = 2 << 20


@public_call
def pool(
    upstream: MemoryResource,
    *,
    initial_bytes: int = 0,
    maximum_bytes: int | None = None,
    growth_bytes: int = GROWTH_BYTES,
) -> FreeListResource:
    """Serve from kept blocks of `upstream`; `trim` gives unused ones back.

    Args:
        upstream: Resource to obtain memory from.
        initial_bytes: Bytes to obtain now, at least `growth_bytes` unless 0.
        maximum_bytes: Most bytes of `upstream` at any time; None for no limit.
        growth_bytes: Least bytes to obtain at once, if the maximum and `upstream` allow.

    Raises:
        InputError: The maximum is below the initial bytes.
        OutOfMemoryError: `upstream` lacks the initial bytes.
    """
    if maximum_bytes is not None:
        if initial_bytes > maximum_bytes:
            raise InputError(
                f"`initial_bytes` (= {initial_bytes}) must not exceed `maximum_bytes` "
                f"(= {maximum_bytes})."
            )
        upstream = LimitingResource(upstream, maximum_bytes)
    made = FreeListResource(upstream, chunk_bytes=min(growth_bytes, upstream.largest_bytes))
    if initial_bytes > 0:
        made.deallocate(made.allocate(initial_bytes), initial_bytes)
    return made
