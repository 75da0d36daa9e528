"""Named regions of shared memory, an extension of the Open Inference Protocol.

The messages of errors are those that clients of Triton search for. A region that is unregistered
while requests use it stays until the last of them has ended.
"""

import enum
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from tightship.driver.types.pools import PAGE_BYTES
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

RESERVED_PREFIXES = ("triton_python_backend_shm_region_", "tightship_")
UNSIGNED_MAX = 2**64 - 1

_KEY = re.compile(r"/?[^/\0]{1,254}")


class Code(enum.Enum):
    """Codes of errors on gRPC."""

    INVALID_ARGUMENT = enum.auto()
    ALREADY_EXISTS = enum.auto()
    NOT_FOUND = enum.auto()
    INTERNAL = enum.auto()
    UNIMPLEMENTED = enum.auto()
    UNAVAILABLE = enum.auto()
    RESOURCE_EXHAUSTED = enum.auto()
    UNAUTHENTICATED = enum.auto()

    @property
    def http_status(self) -> int:
        """Status on HTTP."""
        statuses = {
            Code.NOT_FOUND: 404,
            Code.INTERNAL: 500,
            Code.UNIMPLEMENTED: 501,
            Code.UNAVAILABLE: 503,
            Code.RESOURCE_EXHAUSTED: 503,
            Code.UNAUTHENTICATED: 401,
        }
        return statuses.get(self, 400)


class RegionError(DriverError):
    """A call about regions, or a use of one, is refused.

    Attributes:
        code: Code of the Open Inference Protocol.
    """

    def __init__(self, message: str, code: Code = Code.INVALID_ARGUMENT) -> None:
        super().__init__(message, status=ErrorStatus.INVALID_ARGUMENT)
        self.code = code


@dataclass(frozen=True, slots=True)
class Region:
    """Named bytes of a file.

    Attributes:
        key: Name of the shared memory object.
        offset_bytes: Offset into the object, a multiple of the page size.
    """

    name: str
    key: str
    offset_bytes: int
    size_bytes: int


@dataclass(slots=True, eq=False)
class _Entry:
    region: Region
    use_count: int = 0
    is_unregistered: bool = False


class Regions:
    """Regions of a driver by name, shared by all clients of its inference endpoint."""

    def __init__(self, *, is_enabled: bool) -> None:
        """Refuse changes unless `is_enabled`."""
        self._is_enabled = is_enabled
        self._entries: dict[str, _Entry] = {}

    def check_key(self, region: Region) -> None:
        """Check a new region as far as possible before its object is opened.

        Raises:
            RegionError: Its key is invalid or its name taken; or regions are not enabled.
        """
        self.check_enabled()
        name, key = region.name, region.key
        bare = key.lstrip("/")
        if bare.startswith(RESERVED_PREFIXES):
            raise RegionError(
                f"failed to register shared memory region '{name}': the key contains the reserved "
                "prefix of the driver's own regions"
            )
        if _KEY.fullmatch(key) is None or bare in {".", ".."}:
            raise RegionError(f"failed to register shared memory region '{name}': invalid shm key")
        if name in self._entries:
            raise RegionError(
                f"shared memory region '{name}' already in manager", Code.ALREADY_EXISTS
            )

    def register(self, region: Region, object_bytes: int) -> None:
        """Add a region of an object of this size.

        Raises:
            RegionError: It exceeds the object; or as from `check_key`.
        """
        self.check_key(region)
        offset, size = region.offset_bytes, region.size_bytes
        is_inside = 0 <= offset <= object_bytes and 0 < size <= object_bytes - offset
        if not is_inside or offset % PAGE_BYTES:
            raise RegionError(
                f"failed to register shared memory region '{region.name}': invalid args"
            )
        self._entries[region.name] = _Entry(region)

    def unregister(self, name: str) -> list[Region]:
        """Remove a region, now or after its last use; an unknown name is ignored.

        Returns:
            Regions to unmap now.

        Raises:
            RegionError: Regions are not enabled.
        """
        self.check_enabled()
        entry = self._entries.get(name)
        if entry is None:
            return []
        entry.is_unregistered = True
        return self._removed(entry)

    def unregister_all(self) -> list[Region]:
        """Remove every region, as `unregister` does."""
        self.check_enabled()
        return [region for name in list(self._entries) for region in self.unregister(name)]

    def status(self, name: str | None = None) -> list[Region]:
        """Return all regions, or one; those that wait for their last use included.

        Raises:
            RegionError: No region has this name.
        """
        if name is None:
            return [entry.region for entry in self._entries.values()]
        return [self._entry(name).region]

    def begin_use(self, name: str, offset_bytes: int, size_bytes: int) -> Region:
        """Register a use of bytes `[offset, offset + size)` of a region.

        Raises:
            RegionError: The region does not exist, or the bytes exceed it.
        """
        entry = self._entry(name)
        check_range(entry.region, offset_bytes, size_bytes)
        entry.use_count += 1
        return entry.region

    def begin_again(self, regions: Collection[Region]) -> bool:
        """Register a further use of regions; return False if one of them is gone or leaving."""
        if not self.are_there(regions):
            return False
        for each in regions:
            self._entries[each.name].use_count += 1
        return True

    def are_there(self, regions: Iterable[Region]) -> bool:
        """Whether regions are those of their names, and none waits for its last use."""
        for each in regions:
            entry = self._entries.get(each.name)
            if entry is None or entry.region is not each or entry.is_unregistered:
                return False
        return True

    def end_use(self, region: Region) -> list[Region]:
        """End a use; return regions to unmap now."""
        entry = self._entries[region.name]
        assert entry.use_count > 0, region
        entry.use_count -= 1
        return self._removed(entry) if entry.is_unregistered else []

    def _removed(self, entry: _Entry) -> list[Region]:
        if entry.use_count or not entry.is_unregistered:
            return []
        del self._entries[entry.region.name]
        return [entry.region]

    def _entry(self, name: str) -> _Entry:
        entry = self._entries.get(name)
        if entry is None:
            raise RegionError(f"Unable to find shared memory region: '{name}'", Code.NOT_FOUND)
        return entry

    def check_enabled(self) -> None:
        """Check that clients may change regions.

        Raises:
            RegionError: They may not.
        """
        if not self._is_enabled:
            raise RegionError(
                "Client shared memory is disabled. Start the driver with --allow-client-shm.",
                Code.UNIMPLEMENTED,
            )


def check_range(region: Region, offset_bytes: int, size_bytes: int) -> None:
    """Check that bytes lie in a region.

    Raises:
        RegionError: They do not.
    """
    if not 0 <= offset_bytes < region.size_bytes:
        raise RegionError(f"Invalid offset for shared memory region: '{region.name}'")
    if offset_bytes + size_bytes > UNSIGNED_MAX:
        raise RegionError(
            f"Integer overflow detected: byte_size ({size_bytes}) + offset ({offset_bytes}) "
            f"exceeds {UNSIGNED_MAX} for shared memory region: '{region.name}'"
        )
    if size_bytes < 0 or offset_bytes + size_bytes > region.size_bytes:
        raise RegionError(f"Invalid offset + byte size for shared memory region: '{region.name}'")


def check_input_bytes(model: str, name: str, needed: int, had: int) -> None:
    """Check that an input in a region has the size of its value.

    Raises:
        RegionError: It has not.
    """
    if needed != had:
        raise RegionError(
            f"input byte size mismatch for input '{name}' for model '{model}'. "
            f"Expected {needed}, got {had}"
        )


def check_output_bytes(name: str, needed: int, had: int) -> None:
    """Check that a region is large enough for an output.

    Raises:
        RegionError: It is not.
    """
    if had < needed:
        raise RegionError(
            f"shared memory size specified with the request for output '{name}' ({had} bytes) "
            f"should be at least {needed} bytes to hold the results",
            Code.INTERNAL,
        )
