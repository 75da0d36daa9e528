"""A pool: blocks of any size out of few large ones."""

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
    """Keep what came back of `upstream` and serve from it; `trim` gives back what is unused.

    Args:
        upstream: Where memory comes from.
        initial_bytes: Taken now, and `growth_bytes` at least, unless it is 0.
        maximum_bytes: Of `upstream` at any time.
        growth_bytes: The least that is taken at once, where the maximum and `upstream` admit as
            much.

    Raises:
        InputError: The maximum is below what is taken at first.
        OutOfMemoryError: `upstream` has not so much at first.
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
