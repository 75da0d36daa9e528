"""Types in which a session can store its caches, and caches in one of them."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Literal, get_args

from tightship.errors import GraphError, InputError
from tightship.graph import DType

if TYPE_CHECKING:
    from tightship.engine.state.decoder import Cache

CacheType = Literal["float32", "float16", "bfloat16", "int8"]
"""Types in which a session can store its caches; `chosen_type` has the default."""
SCALE_BYTES = 4
HALVES = {DType.FLOAT16: 10, DType.BFLOAT16: 16}
"""Types that caches may have in the file, besides float32, with their numbers for Cast."""


def check_cache_type(name: str | None) -> None:
    """Refuse what is not a type of caches.

    Raises:
        InputError: It is not one.
    """
    if name is not None and name not in get_args(CacheType):
        raise InputError(
            f"`cache` is {name!r}; it must be {', '.join(map(repr, get_args(CacheType)))}, or None "
            "for the usual type."
        )


def chosen_type(
    asked: CacheType | None, usual: CacheType | None, types: Collection[DType]
) -> CacheType | None:
    """Return the type that caches are rounded to; None for the file's.

    Args:
        asked: Choice of the caller; None for the usual type.
        usual: Usual type; None for the file's.
        types: Element types of the model's inputs, among them those of its caches.

    Raises:
        InputError: It is not a type of caches.
    """
    check_cache_type(asked)
    kind = asked or usual
    return None if kind == "float32" and HALVES.keys().isdisjoint(types) else kind


def with_type(cache: "Cache", kind: CacheType | None) -> "Cache":
    """Return a cache as the file has it in another type; the same if it has that type already.

    Raises:
        GraphError: Its rows cannot have the type.
    """
    if kind is None or cache.dtype is DType(kind):
        return cache
    name, axis, rank = cache.pair.past, cache.pair.axis, len(cache.shape)
    if cache.dtype is not DType.FLOAT32 and cache.dtype not in HALVES:
        raise GraphError(
            f"The cache `{name}` has elements of {cache.dtype.value} and cannot be stored as "
            f"{kind}; leave out `cache`."
        )
    if kind == "float32":
        raise GraphError(
            f"The cache `{name}` has elements of {cache.dtype.value} in the model, and float32 "
            "would have the same numbers in twice as many bytes; leave out `cache`."
        )
    shape = cache.shape
    if kind == "int8":
        if axis == rank - 1:
            raise GraphError(
                f"Axis {axis} of the cache `{name}`, its last, is that of tokens, so that no head "
                "of a token has adjacent elements with one scale; `cache` may be float16 or "
                "bfloat16."
            )
        shape = (*shape[:-1], shape[-1] + SCALE_BYTES)
    return cache._replace(dtype=DType(kind), shape=shape, stored=kind)
