"""A pool as a file that constants lie in."""

from pathlib import Path

from tightship.driver.rim.mappings import Mappings
from tightship.driver.rules.pools import Pool
from tightship.errors import FormatError
from tightship.graph import MappedFile


class PoolFile(MappedFile):
    """Bytes of a pool: where they are if it is mapped, else read whenever they are needed."""

    def __init__(self, mappings: Mappings, pool: Pool) -> None:
        """Nothing is read yet."""
        self.path = Path(f"pool {pool.identifier}")
        self.size_bytes = pool.extent.size_bytes
        self._mappings, self._pool = mappings, pool

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """The bytes `[offset, offset + size)`.

        Raises:
            DriverError: GENERAL_FAILURE: the file has become shorter, or cannot be mapped.
            FormatError: The range leaves the pool.
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
        """Nothing: the pages are the client's as well."""
