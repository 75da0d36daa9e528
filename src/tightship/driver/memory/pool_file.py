"""Pools as files that hold constants."""

import fcntl
from pathlib import Path

from tightship.driver.memory.descriptor import seals_of
from tightship.driver.memory.mappings import Mappings
from tightship.driver.types.pools import Pool, PoolMode
from tightship.errors import FormatError
from tightship.graph import MappedFile


class PoolFile(MappedFile):
    """Bytes of a pool: a view if it is mapped, else read at each use."""

    def __init__(self, mappings: Mappings, pool: Pool) -> None:
        """Refer to a pool without reading it."""
        self.path = path_of(pool)
        self.size_bytes = pool.extent.size_bytes
        self._mappings, self._pool = mappings, pool

    @property
    def is_mapped(self) -> bool:
        """False: reading a pool that is mapped brings in no page of a file on disk."""
        return False

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """Return the bytes `[offset, offset + size)`.

        Raises:
            DriverError: GENERAL_FAILURE: the file has become shorter, or cannot be mapped.
            FormatError: The range exceeds the pool.
        """
        if offset < 0 or size < 0 or offset + size > self.size_bytes:
            raise FormatError(
                f"The {self.path} has {self.size_bytes} bytes, but a tensor needs bytes "
                f"[{offset}, {offset + size})."
            )
        return self._mappings.read(self._pool, offset, size).data

    def read_into(self, offset: int, room: memoryview) -> None:
        """Fill `room` with the bytes from `offset` on; raises as `bytes_at`."""
        room[:] = self.bytes_at(offset, len(room))

    def release(self) -> None:
        """Keep the pages, because the client uses them as well."""


def is_steady(pool: Pool) -> bool:
    """Whether a pool is mapped and its bytes cannot change, by seals or a trusted folder."""
    if pool.mode is not PoolMode.SEALED:
        return False
    seals = seals_of(pool.handle)
    is_trusted = not seals & fcntl.F_SEAL_SHRINK
    return is_trusted or bool(seals & fcntl.F_SEAL_WRITE)


def steady_file(mappings: Mappings, pool: Pool) -> MappedFile:
    """Return a pool as a file that cannot change: a copy if the client may still write to it.

    Raises:
        DriverError: GENERAL_FAILURE: the pool cannot be mapped or read.
    """
    if is_steady(pool):
        mappings.map(pool)
        return PoolFile(mappings, pool)
    data = steady_bytes(mappings, pool, 0, pool.extent.size_bytes)
    return MappedFile.of_bytes(data, path_of(pool))


def steady_bytes(mappings: Mappings, pool: Pool, start: int, size_bytes: int) -> memoryview:
    """Return bytes of a pool that cannot change: a copy if the client may still write to them.

    Raises:
        DriverError: GENERAL_FAILURE: the pool cannot be mapped or read.
    """
    data = mappings.read(pool, start, size_bytes)
    is_mapped = pool.mode is PoolMode.SEALED
    return (data.copy() if is_mapped and not is_steady(pool) else data).data


def path_of(pool: Pool) -> Path:
    """Return the name of a pool in messages, as a path."""
    return Path(f"pool {pool.identifier}")
