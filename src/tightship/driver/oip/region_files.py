"""Memory of named regions: objects mapped behind a guard and used in place.

A client may truncate its object at any time. Missing bytes then read as zeros, and the request that
needed them is refused (`GuardedMapping`).
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tightship._core import GuardedMapping
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.regions import Code, Region, Regions
from tightship.driver.types.quota import Account, Resource
from tightship.driver.types.settings import USER_LIMITS
from tightship.errors import DriverError

SHARED_MEMORY_FOLDER = Path("/dev/shm")
REGIONS_MAX = 256
"""Most regions, because each takes a descriptor and a mapping of the driver."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """Bytes of a region during a request.

    Attributes:
        bytes: View of the bytes, which may change at any time.
        offset_bytes: Offset into the region.
        stop: End of the bytes in the object.
    """

    bytes: Bytes
    region: Region
    offset_bytes: int
    mapped: "_Mapped"
    stop: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "stop", self._start + self.bytes.size)

    @property
    def _start(self) -> int:
        return self.region.offset_bytes + self.offset_bytes

    def check(self) -> None:
        """Check that the object has had all bytes so far.

        Raises:
            OipError: It has become shorter, or its pages could not be allocated.
        """
        mapped = self.mapped
        if mapped.guard.is_lost or os.fstat(mapped.file).st_size < self.stop:
            raise OipError("a shared memory region is shorter than when it was registered")

    def overlaps(self, other: "Window") -> bool:
        """Whether both share bytes of an object, perhaps under two names."""
        is_one = self.mapped.identity == other.mapped.identity
        return is_one and max(self._start, other._start) < min(self.stop, other.stop)


@dataclass(frozen=True, slots=True, eq=False)
class _Mapped:
    file: int
    identity: tuple[int, int]
    guard: GuardedMapping
    bytes: Bytes


class RegionFiles:
    """Regions with their mapped objects. May be used from several threads.

    Attributes:
        on_closed: Called when a region was removed; its windows must not be kept.
    """

    def __init__(
        self,
        *,
        is_enabled: bool,
        folder: Path = SHARED_MEMORY_FOLDER,
        account: Account | None = None,
    ) -> None:
        """Charge `account`, that of the objects' user, which native clients share."""
        self._account = account or Account(USER_LIMITS)
        self._regions = Regions(is_enabled=is_enabled)
        self._folder = folder
        self._mapped: dict[str, _Mapped] = {}
        self._lock = threading.Lock()
        self.on_closed: Callable[[], None] = lambda: None

    def check_enabled(self) -> None:
        """Check that clients may change regions.

        Raises:
            RegionError: They may not.
        """
        self._regions.check_enabled()

    def register(self, region: Region) -> None:
        """Open a region's object and add the region; nothing stays open on failure.

        Raises:
            RegionError, OipError: As from `Regions.register`; or the object is missing, not a
                regular file or another user's; or there are `REGIONS_MAX` regions, or the account
                is full.
        """
        with self._lock, ExitStack() as undo:
            self._regions.check_key(region)
            if len(self._mapped) >= REGIONS_MAX:
                raise OipError(
                    f"failed to register shared memory region '{region.name}': {REGIONS_MAX} are "
                    "registered, which is the limit; unregister one",
                    Code.UNAVAILABLE,
                )
            file = self._opened(region)
            undo.callback(os.close, file)
            found = self._checked(file, region)
            self._regions.register(region, found.st_size)
            undo.callback(self._regions.unregister, region.name)
            self._charge(region)
            undo.callback(self._refund, region)
            try:
                guard = GuardedMapping(file, region.offset_bytes, region.size_bytes)
            except MemoryError:
                raise OipError(
                    f"failed to map shared memory region '{region.name}'", Code.INTERNAL
                ) from None
            identity = (found.st_dev, found.st_ino)
            self._mapped[region.name] = _Mapped(file, identity, guard, guard.array())
            undo.pop_all()

    def _charge(self, region: Region) -> None:
        try:
            self._account.charge(Resource.POOL_BYTES, region.size_bytes)
        except DriverError as error:
            raise OipError(str(error), Code.UNAVAILABLE) from None
        try:
            self._account.charge(Resource.POOLS)
        except DriverError as error:
            self._account.refund(Resource.POOL_BYTES, region.size_bytes)
            raise OipError(str(error), Code.UNAVAILABLE) from None

    def _refund(self, region: Region) -> None:
        self._account.refund(Resource.POOL_BYTES, region.size_bytes)
        self._account.refund(Resource.POOLS)

    def unregister(self, name: str | None) -> None:
        """Remove a region as `Regions.unregister` does; all if there is no name."""
        with self._lock:
            regions = self._regions
            self._close(regions.unregister_all() if name is None else regions.unregister(name))

    def status(self, name: str | None) -> list[Region]:
        """Return the regions as `Regions.status` does."""
        with self._lock:
            return self._regions.status(name)

    @contextmanager
    def used(self, name: str, offset_bytes: int, size_bytes: int) -> Iterator[Window]:
        """Keep bytes of a region mapped within a block.

        Raises:
            RegionError: The region does not exist, or the bytes exceed it.
            OipError: Its object has become shorter.
        """
        with self._lock:
            region = self._regions.begin_use(name, offset_bytes, size_bytes)
            mapped = self._mapped[name]
        try:
            part = mapped.bytes[offset_bytes : offset_bytes + size_bytes]
            window = Window(part, region, offset_bytes, mapped)
            window.check()
            yield window
        finally:
            with self._lock:
                self._close(self._regions.end_use(region))

    def are_there(self, regions: Sequence[Region]) -> bool:
        """Whether regions are current and not about to be removed."""
        with self._lock:
            return self._regions.are_there(regions)

    def begin_again(self, regions: Sequence[Region]) -> bool:
        """Use the windows of regions again until `end`; return False if one of them is gone."""
        with self._lock:
            return self._regions.begin_again(regions)

    def end(self, regions: Sequence[Region]) -> None:
        """End a use that `begin_again` began."""
        with self._lock:
            for each in regions:
                if closed := self._regions.end_use(each):
                    self._close(closed)

    def _opened(self, region: Region) -> int:
        path = self._folder / region.key.lstrip("/")
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            return os.open(path, flags)
        except (OSError, UnicodeEncodeError):
            raise OipError(
                f"Unable to open shared memory region: '{region.key}'", Code.INTERNAL
            ) from None

    def _checked(self, file: int, region: Region) -> os.stat_result:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
            raise OipError(f"Unable to open shared memory region: '{region.key}'", Code.INTERNAL)
        return found

    def _close(self, regions: list[Region]) -> None:
        """Close regions; each mapping ends with the last array on it."""
        for region in regions:
            os.close(self._mapped.pop(region.name).file)
            self._refund(region)
        if regions:
            self.on_closed()
