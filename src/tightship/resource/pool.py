"""Memory pool: blocks of any size from few large ones."""

from tightship._core import FreeListResource, LimitingResource, MemoryResource
from tightship.deprecated import takes_old_parameters
from tightship.errors import InputError
from tightship.public_calls import public_call
from tightship.quantity import parse_bytes

CHUNK_BYTES = 2 << 20


@public_call
@takes_old_parameters("pool")
def pool(
    upstream: MemoryResource,
    *,
    initial_bytes: int | str = 0,
    max_bytes: int | str | None = None,
    chunk_bytes: int | str = CHUNK_BYTES,
) -> FreeListResource:
    """Serve from kept blocks of `upstream`; `trim` gives unused ones back.

    Args:
        upstream: Resource to obtain memory from.
        initial_bytes: Bytes to obtain now, at least `chunk_bytes` unless 0.
        max_bytes: Most bytes of `upstream` at any time; None for no limit.
        chunk_bytes: Least bytes to obtain at once, if `max_bytes` and `upstream` allow.

    Raises:
        InputError: An amount is invalid, or `max_bytes` is below the initial bytes.
        OutOfMemoryError: `upstream` lacks the initial bytes.
    """
    first_bytes = parse_bytes(initial_bytes, "initial_bytes", 0)
    if max_bytes is not None:
        most_bytes = parse_bytes(max_bytes, "max_bytes")
        if first_bytes > most_bytes:
            raise InputError(
                f"`initial_bytes` (= {initial_bytes}) must not exceed `max_bytes` (= {max_bytes})."
            )
        upstream = LimitingResource(upstream, most_bytes)
    least_bytes = parse_bytes(chunk_bytes, "chunk_bytes", 0)
    made = FreeListResource(upstream, chunk_bytes=min(least_bytes, upstream.largest_bytes))
    if first_bytes > 0:
        made.deallocate(made.allocate(first_bytes), first_bytes)
    return made
