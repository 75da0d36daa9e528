"""Completion of a snapshot with what the service lacks, as resident bytes, and its delivery."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tightship.driver.memory.descriptor import write_all
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.models.registry import Models
from tightship.driver.protocol.snapshot_form import encode_snapshot
from tightship.driver.service.effects import Measure
from tightship.driver.service.events import Measured
from tightship.driver.types.snapshot import DRIVER, Holdings, Snapshot
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError
from tightship.resource.resident import mapped


@dataclass(frozen=True, slots=True)
class Resident:
    """Proportional set size of the addresses `[start, stop)`."""

    start: int
    stop: int
    pss_bytes: int

    def share_bytes(self, start: int, stop: int) -> int:
        """Return the part in other addresses, pro rata: the kernel may have merged neighbours."""
        common = max(0, min(stop, self.stop) - max(start, self.start))
        return self.pss_bytes * common // (self.stop - self.start)


def residents() -> Iterator[Resident]:
    """Yield all mappings in address order.

    Raises:
        OSError: `/proc/self/smaps` cannot be read.
    """
    for found in mapped(Path("/proc/self/smaps")):
        for line in found.lines:
            if line.startswith("Pss:"):
                yield Resident(found.start, found.stop, int(line.split()[1]) * 1024)


def measure(asked: Measure, mappings: Mappings, models: Models, slow: FileProber) -> Measured:
    """Measure now and write the result to the file of the request."""
    try:
        data = encode_snapshot(completed(asked.snapshot, mappings, models))
        slow.answer(asked.handle, partial(_write, asked.handle, data))
    except MemoryError:
        return Measured(asked.query, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
    except (OSError, DriverError):
        return Measured(asked.query, ErrorStatus.GENERAL_FAILURE)
    return Measured(asked.query, ErrorStatus.NONE, len(data))


def _write(file: int, data: bytes) -> None:
    os.lseek(file, 0, os.SEEK_SET)
    write_all(file, data)


def completed(snapshot: Snapshot, mappings: Mappings, models: Models) -> Snapshot:
    """Add resident bytes of pools, and names and weights of models, to a snapshot."""
    found = tuple(residents())
    pools = mapped_bytes(mappings.places(), found)
    known = models.shares()

    def complete(client: Holdings) -> Holdings:
        return replace(
            client,
            pools=tuple(
                replace(pool, pss_bytes=pools.get(pool.number, 0)) for pool in client.pools
            ),
            models=tuple(known.get(model.number, model) for model in client.models),
        )

    driver = replace(DRIVER, user=os.geteuid(), pid=os.getpid(), name="tightship serve")
    return Snapshot(
        Holdings(driver, models=models.own_shares()),
        tuple(map(complete, snapshot.clients)),
        models.arena_bytes(),
        sum(each.pss_bytes for each in found),
    )


def mapped_bytes(
    places: Mapping[int, tuple[int, int]], found: Sequence[Resident]
) -> dict[int, int]:
    """Return the resident bytes of each mapped pool.

    Args:
        places: First and end address of each pool, without overlaps.
        found: All mappings of the process in address order.
    """
    sizes: dict[int, int] = {}
    index = 0
    for number, (start, stop) in sorted(places.items(), key=lambda item: item[1]):
        while index < len(found) and found[index].stop <= start:
            index += 1
        beyond = index
        while beyond < len(found) and found[beyond].start < stop:
            beyond += 1
        sizes[number] = sum(each.share_bytes(start, stop) for each in found[index:beyond])
    return sizes
