"""How memory is obtained."""

from tightship._core import (
    Block,
    BumpResource,
    CompositeResource,
    FileResource,
    FreeListResource,
    HostResource,
    MemoryResource,
    PageResource,
    RegionResource,
    ResourceStatistics,
    SegmentResource,
    SharedResource,
    SlabResource,
)
from tightship.resource.division import divide
from tightship.resource.places import main_memory, scratchpad
from tightship.resource.scope import scope

__all__ = [
    "Block",
    "BumpResource",
    "CompositeResource",
    "FileResource",
    "FreeListResource",
    "HostResource",
    "MemoryResource",
    "PageResource",
    "RegionResource",
    "ResourceStatistics",
    "SegmentResource",
    "SharedResource",
    "SlabResource",
    "divide",
    "main_memory",
    "scope",
    "scratchpad",
]
