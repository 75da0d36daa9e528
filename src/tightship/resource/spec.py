"""Resources from a text: `composite`, `limit:1GiB/pool:2MiB`, `limit:1GiB/(bump+host)`.

A spec is one stack, or several joined by `+`: each serves requests that those before it refuse. A
stack is adaptors and a root, joined by `/`; the root may be a spec in parentheses.
"""

import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from tightship._core import (
    BumpResource,
    CombiningResource,
    CompositeResource,
    FallbackResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    MallocResource,
    MemoryResource,
    StatisticsResource,
    TrackingResource,
)
from tightship.deprecated import current
from tightship.errors import InputError
from tightship.public_calls import public_call
from tightship.quantity import parse_bytes
from tightship.resource.virtual import virtual_resource

CHUNK_BYTES = 2 << 20

_Make = TypeVar("_Make")


def _half_of_memory() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


ROOTS: Mapping[str, Callable[[int | None], MemoryResource]] = {
    "composite": lambda size: CompositeResource(HostResource(), size or _half_of_memory()),
    "seed": lambda size: CompositeResource(
        HostResource(), size or _half_of_memory(), best_fit=False, free_list_last=True
    ),
    "pool": lambda size: FreeListResource(HostResource(), chunk_bytes=size or CHUNK_BYTES),
    "first_fit": lambda size: FreeListResource(
        HostResource(), chunk_bytes=size or CHUNK_BYTES, best_fit=False
    ),
    "bump": lambda size: BumpResource(HostResource(), size or _half_of_memory(), 1),
    "virtual": lambda size: virtual_resource(page_bytes=size),
    "virtual_chunked": lambda size: virtual_resource(policy="chunked", page_bytes=size),
    "host": lambda _: HostResource(),
    "malloc": lambda _: MallocResource(),
}
"""Makers of roots by name; the size is that of the region, or of the chunks or pages taken."""

ADAPTORS: Mapping[str, Callable[[MemoryResource, int | None], MemoryResource]] = {
    "limit": lambda upstream, size: LimitingResource(upstream, size or 0),
    "statistics": lambda upstream, _: StatisticsResource(upstream),
    "combining": lambda upstream, _: CombiningResource(upstream),
    "tracking": lambda upstream, _: TrackingResource(upstream),
    "guarded": lambda upstream, size: GuardedResource(upstream, quarantine_bytes=size or 0),
    "guard_pages": lambda upstream, size: GuardPageResource(upstream, quarantine_bytes=size or 0),
}

DEFAULTS = (
    *("composite", "pool", "virtual", "malloc", "first_fit", "seed", "virtual_chunked", "host"),
)


@public_call
def resource_from(spec: str) -> MemoryResource:
    """Make the resource of `spec`: names from the outermost to the root, each with optional size.

    Raises:
        InputError: A name or a size is unknown, a parenthesis is unmatched, or the stack can never
            work.
        OutOfMemoryError: The system refuses the root's region.
    """
    *others, resource = [_stack(stack) for stack in _split(spec, "+")]
    for other in reversed(others):
        resource = FallbackResource(other, resource)
    return resource


def _stack(spec: str) -> MemoryResource:
    *outer, root = _split(spec, "/")
    if root.startswith("(") and root.endswith(")"):
        resource = resource_from(root[1:-1])
    else:
        name, size = _part(root)
        resource = _found("root", current("root", name), ROOTS)(size)
    for each in reversed(outer):
        name, size = _part(each)
        resource = _found("adaptor", name, ADAPTORS)(resource, size)
    return resource


def _split(spec: str, separator: str) -> list[str]:
    """Split at separators outside parentheses."""
    parts, depth = [""], 0
    for letter in spec:
        depth += (letter == "(") - (letter == ")")
        if depth < 0:
            break
        if letter == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    if depth != 0:
        raise InputError(f"`{spec}` must close each parenthesis that it opens.")
    return parts


def _part(text: str) -> tuple[str, int | None]:
    name, _, size = text.partition(":")
    return name, parse_bytes(size) if size else None


def _found(kind: str, name: str, table: Mapping[str, _Make]) -> _Make:
    if name not in table:
        known = ", ".join(f"`{each}`" for each in table)
        raise InputError(f"Unknown {kind} `{name}` of a resource; choose from {known}.")
    return table[name]
