"""What a driver offers, and its limits."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightship.driver.types.quota import Limits, Resource

GIB = 1 << 30

CONNECTION_LIMITS: Limits = {
    Resource.CONNECTIONS: 1,
    Resource.POOLS: 4096,
    Resource.POOL_BYTES: 64 * GIB,
    Resource.BUFFERS: 16_384,
    Resource.BUFFER_BYTES: 16 * GIB,
    Resource.MODELS: 256,
    Resource.EXECUTIONS: 1024,
    Resource.BURSTS: 64,
    Resource.CALLS: 256,
    Resource.COPY_BYTES: 16 * GIB,
}
USER_LIMITS: Limits = {
    Resource.CONNECTIONS: 1024,
    Resource.POOLS: 65_536,
    Resource.POOL_BYTES: 256 * GIB,
    Resource.BUFFERS: 65_536,
    Resource.BUFFER_BYTES: 64 * GIB,
    Resource.MODELS: 1024,
    Resource.EXECUTIONS: 16_384,
    Resource.BURSTS: 1024,
    Resource.CALLS: 16_384,
    Resource.COPY_BYTES: 64 * GIB,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a driver offers, and its limits.

    Attributes:
        features: Of `buffer_copies`, `call_ring`, `dma_buf`, `hardware_buffer`, `isolated`,
            `memory_domains`, `named_files`; the rest is always there.
        model_cache_files, data_cache_files: How many a compilation cache takes; both 0 for none.
        grace_ns: How long after its deadline a run may take to stop before it is given up.
        operators: Users that may ask who holds what.
        repeat_max_ns: What a run may have taken that the rim repeats without asking.
    """

    features: frozenset[str] = frozenset(
        {"buffer_copies", "call_ring", "memory_domains", "named_files"}
    )
    model_cache_files: int = 1
    data_cache_files: int = 1
    grace_ns: int = 50_000_000
    operators: frozenset[int] = frozenset({0})
    repeat_max_ns: int = 50_000_000
    connection_limits: Mapping[Resource, int] = field(default_factory=lambda: CONNECTION_LIMITS)
    user_limits: Mapping[Resource, int] = field(default_factory=lambda: USER_LIMITS)
