"""Runs operators one by one, with cached primitives and reused pools, for code without a plan.

    from tightship import primitive

    pools = primitive.PoolManager(64 << 20)  # free pools hold at most 64 MiB
    cache = primitive.PrimitiveCache(1024, "1MiB", pools)
    runner = primitive.OperatorRunner("model.onnx", cache=cache, memory="offset")
    y = runner(x=x)

Each operator finds or compiles its primitive when it comes, takes memory for its scratch and values
from a pool, and gives it back when it ends. A loaded model (`tightship.load`) plans all of that in
advance; results are the same bits.
"""

from tightship._core import (
    Attributes,
    BlobLifetimeManager,
    CachedPrimitive,
    LifetimeManager,
    MemoryDesc,
    MemoryManager,
    OffsetLifetimeManager,
    PoolManager,
    PoolStatistics,
    PrimitiveCache,
    PrimitiveCacheStatistics,
    PrimitiveDesc,
    PrimitiveResource,
)
from tightship.engine.primitive_cache import process_cache
from tightship.primitive.operator_runner import Memory, OperatorRunner

__all__ = [
    "Attributes",
    "BlobLifetimeManager",
    "CachedPrimitive",
    "LifetimeManager",
    "Memory",
    "MemoryDesc",
    "MemoryManager",
    "OffsetLifetimeManager",
    "OperatorRunner",
    "PoolManager",
    "PoolStatistics",
    "PrimitiveCache",
    "PrimitiveCacheStatistics",
    "PrimitiveDesc",
    "PrimitiveResource",
    "process_cache",
]
