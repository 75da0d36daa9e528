"""What preparing a model copies of its client's memory, for as long as the model is there."""

from collections.abc import Sequence

from tightship.driver.types.model import FileFormat, Lifetime, Model, ModelFile, ModelSource
from tightship.driver.types.pools import Pool, PoolMode

_READ = frozenset({PoolMode.COPY, PoolMode.ISOLATED})
"""Pools whose bytes are copied before anybody looks at them."""


def copied_bytes(source: ModelSource | None, pools: Sequence[Pool]) -> int:
    """At most so many bytes of a checked source, packed weights not counted.

    Args:
        source: None to read a cache, which has packed weights only.
        pools: That it names, in its order.
    """
    match source:
        case Model():
            return _constants_bytes(source, pools)
        case ModelFile(file_format=FileFormat.ONNX):
            return _part(pools[0], source.length_bytes) + sum(
                _part(pool, pool.extent.size_bytes) for pool in pools[1:]
            )
        case ModelFile(file_format=FileFormat.OPERANDS):  # which constants it has is not known
            rest = sum(pool.extent.size_bytes for pool in pools[1:] if pool.mode in _READ)
            return source.length_bytes + rest
    return 0  # it is mapped, there already, or packed


def _part(pool: Pool, size_bytes: int) -> int:
    return 0 if pool.is_steady else size_bytes


def _constants_bytes(model: Model, pools: Sequence[Pool]) -> int:
    read = {index for index, pool in enumerate(pools) if pool.mode in _READ}
    return sum(
        operand.location.length_bytes
        for subgraph in (model.main, *model.referenced)
        for operand in subgraph.operands
        if operand.lifetime == Lifetime.CONSTANT_REFERENCE and operand.location.pool_index in read
    )
