"""How memory is obtained."""

from tightship._core import (
    Block,
    BumpResource,
    CompositeResource,
    FreeListResource,
    HostResource,
    MemoryResource,
    PageResource,
    RegionResource,
    ResourceStatistics,
    SlabResource,
)

__all__ = [
    "Block",
    "BumpResource",
    "CompositeResource",
    "FreeListResource",
    "HostResource",
    "MemoryResource",
    "PageResource",
    "RegionResource",
    "ResourceStatistics",
    "SlabResource",
]
