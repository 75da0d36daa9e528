"""Memory resources: ways to obtain memory."""

from tightship._core import (
    Adaptor,
    AlignedResource,
    BinningResource,
    Block,
    BumpResource,
    CallbackResource,
    CombiningResource,
    CompositeResource,
    FailingResource,
    FailureCallbackResource,
    FallbackResource,
    FileResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    LiveBlock,
    MemoryResource,
    PageResource,
    RegionResource,
    ResourceCounters,
    ResourceStatistics,
    SegmentResource,
    SharedResource,
    SlabResource,
    StatisticsResource,
    TracingResource,
    TrackingResource,
)
from tightship.late_names import late_names
from tightship.resource.counted import counted
from tightship.resource.current import (
    current_resource,
    reinitialize,
    set_current_resource,
    statistics,
)
from tightship.resource.division import divide
from tightship.resource.places import main_memory, scratchpad
from tightship.resource.pool import pool
from tightship.resource.python_resource import PythonResource
from tightship.resource.scope import scope
from tightship.resource.shared_arenas import SharedArenaPool

__getattr__ = late_names(__name__, virtual="")

__all__ = [
    "Adaptor",
    "AlignedResource",
    "BinningResource",
    "Block",
    "BumpResource",
    "CallbackResource",
    "CombiningResource",
    "CompositeResource",
    "FailingResource",
    "FailureCallbackResource",
    "FallbackResource",
    "FileResource",
    "FreeListResource",
    "GuardPageResource",
    "GuardedResource",
    "HostResource",
    "LimitingResource",
    "LiveBlock",
    "MemoryResource",
    "PageResource",
    "PythonResource",
    "RegionResource",
    "ResourceCounters",
    "ResourceStatistics",
    "SegmentResource",
    "SharedArenaPool",
    "SharedResource",
    "SlabResource",
    "StatisticsResource",
    "TracingResource",
    "TrackingResource",
    "counted",
    "current_resource",
    "divide",
    "main_memory",
    "pool",
    "reinitialize",
    "scope",
    "scratchpad",
    "set_current_resource",
    "statistics",
]
