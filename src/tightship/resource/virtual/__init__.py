"""Virtual memory resources: physical chunks mapped to addresses, and moved between them."""

from tightship._core import (
    ChunkedVirtualResource,
    CudaDevice,
    CudaStream,
    FailingDevice,
    GrowingVirtualResource,
    HostDevice,
    HostStream,
    PagedDevice,
    PlannedResource,
    PythonDevice,
    PythonStream,
    SharedDevice,
    StealingVirtualResource,
    Stream,
    VirtualResource,
    VirtualStatistics,
    process_mappings,
)
from tightship.late_names import late_names
from tightship.resource.virtual.composed import Policy, virtual_resource
from tightship.resource.virtual.snapshot import memory_events, virtual_snapshot, write_snapshot

__getattr__ = late_names(__name__)

__all__ = [
    "ChunkedVirtualResource",
    "CudaDevice",
    "CudaStream",
    "FailingDevice",
    "GrowingVirtualResource",
    "HostDevice",
    "HostStream",
    "PagedDevice",
    "PlannedResource",
    "Policy",
    "PythonDevice",
    "PythonStream",
    "SharedDevice",
    "StealingVirtualResource",
    "Stream",
    "VirtualResource",
    "VirtualStatistics",
    "memory_events",
    "process_mappings",
    "virtual_resource",
    "virtual_snapshot",
    "write_snapshot",
]
