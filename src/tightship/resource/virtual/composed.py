"""Composes a virtual resource with a front for small requests."""

from typing import Literal, cast, get_args

from tightship._core import (
    BinningResource,
    ChunkedVirtualResource,
    CompositeResource,
    GrowingVirtualResource,
    HostDevice,
    HostResource,
    MemoryResource,
    PagedDevice,
    StealingVirtualResource,
)
from tightship.deprecated import current
from tightship.errors import InputError
from tightship.public_calls import public_call
from tightship.quantity import parse_bytes

PAGE_BYTES = 2 << 20
CHUNK_BYTES = 20 << 20
SMALL_REGION_BYTES = 1 << 30

Policy = Literal["stealing", "chunked"]
"""Policy by which a virtual resource finds memory: page stealing, or whole chunks."""


@public_call
def virtual_resource(
    device: PagedDevice | None = None,
    *,
    policy: Policy = "stealing",
    page_bytes: int | str | None = None,
    max_bytes: int | str | None = None,
    small_bytes: int | str = 0,
) -> MemoryResource:
    """Make blocks of any size out of pages that are mapped where they are needed.

    Args:
        device: Device whose memory is used; None for the process's own.
        policy: `"stealing"` moves free pages to a request; `"chunked"` maps whole physical chunks,
            and has no budget.
        page_bytes: Size of a page, or of a chunk, by default `CHUNK_BYTES`. Pages of the process's
            own memory are by default the larger the more is live, from 16 KiB to `PAGE_BYTES`;
            those of another device `PAGE_BYTES`.
        max_bytes: Most bytes of the device's memory at any time; None for no limit.
        small_bytes: Largest request that a composite over host memory beside the pages serves, for
            which `SMALL_REGION_BYTES` of addresses are reserved; 0 for no composite.

    Raises:
        InputError: The policy is unknown or has no budget, the device has no such pages, or small
            requests would go to the host while the device's memory is elsewhere or shared.
        OutOfMemoryError: The system refuses the addresses for small requests.
    """
    device = device or HostDevice()
    largest_bytes = parse_bytes(small_bytes, "small_bytes", 0)
    policy = _current(policy)
    made: MemoryResource
    if policy == "stealing" and page_bytes is None and isinstance(device, HostDevice):
        made = GrowingVirtualResource(device, max_bytes=max_bytes)
    elif policy == "stealing":
        made = StealingVirtualResource(
            device, page_bytes=PAGE_BYTES if page_bytes is None else page_bytes, max_bytes=max_bytes
        )
    elif max_bytes is None:
        made = ChunkedVirtualResource(device, CHUNK_BYTES if page_bytes is None else page_bytes)
    else:
        raise InputError(
            f"The policy `chunked` has no budget; leave out `max_bytes` (= {max_bytes}), or put a "
            "`LimitingResource` over it."
        )
    if largest_bytes == 0:
        return made
    if not isinstance(device, HostDevice):
        raise InputError(
            f"Requests up to `small_bytes` (= {small_bytes}) would get private memory of the "
            f"host, not the {type(device).__name__}'s; leave `small_bytes` out."
        )
    front = CompositeResource(HostResource(), SMALL_REGION_BYTES)
    return BinningResource(made, [(largest_bytes, front)])


def _current(policy: str) -> Policy:
    """Check a policy's name; the deprecated one warns."""
    policy = current("policy", policy)
    if policy not in get_args(Policy):
        raise InputError(f"Unknown policy `{policy}`; choose `stealing` or `chunked`.")
    return cast(Policy, policy)
