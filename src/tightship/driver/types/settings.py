"""Features and limits of a driver."""

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
    """Features and limits of a driver.

    Attributes:
        features: Optional features: any of `buffer_copies`, `call_ring`, `dma_buf`,
            `hardware_buffer`, `isolated`, `memory_domains`, `named_files`.
        model_cache_files, data_cache_files: Files of a compilation cache; both 0 for no caching.
        grace_ns: Time after its deadline that a run has to stop before it is given up.
        operators: Users that may request a snapshot of all clients.
        repeat_max_ns: Longest run that the server may repeat without asking the service.
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
