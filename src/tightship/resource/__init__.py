"""How memory is obtained."""

from tightship._core import (
    Block,
    BumpResource,
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
    "HostResource",
    "MemoryResource",
    "PageResource",
    "RegionResource",
    "ResourceStatistics",
    "SlabResource",
]
