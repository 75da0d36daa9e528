"""Client memory that preparing a model copies and keeps as long as the model."""

from collections.abc import Sequence

from tightship.driver.types.model import FileFormat, Lifetime, Model, ModelFile, ModelSource
from tightship.driver.types.pools import Pool, PoolMode

_READ = frozenset({PoolMode.COPY, PoolMode.ISOLATED})
"""Modes of pools whose bytes are copied before use."""


def copied_bytes(source: ModelSource | None, pools: Sequence[Pool]) -> int:
    """Return an upper bound of the copied bytes of a checked source, without packed weights.

    Args:
        source: Checked source; None to read a cache, which has packed weights only.
        pools: Pools that the source names, in its order.
    """
    match source:
        case Model():
            return _constants_bytes(source, pools)
        case ModelFile(file_format=FileFormat.ONNX):
            return _part(pools[0], source.length_bytes) + sum(
                _part(pool, pool.extent.size_bytes) for pool in pools[1:]
            )
        case ModelFile(file_format=FileFormat.OPERANDS):  # its constants are not decoded yet
            rest = sum(pool.extent.size_bytes for pool in pools[1:] if pool.mode in _READ)
            return source.length_bytes + rest
    return 0  # mapped, already in the driver, or packed


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
