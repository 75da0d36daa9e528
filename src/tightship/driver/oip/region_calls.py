"""Calls about shared memory of the system, and about CUDA's, which is not supported."""

import enum
from typing import Any, NoReturn

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Code


class Memory(enum.Enum):
    """Kinds of shared memory."""

    SYSTEM = enum.auto()
    CUDA = enum.auto()


def status(files: RegionFiles, memory: Memory, name: str | None) -> list[dict[str, Any]]:
    """Return all regions, or the one with this name.

    Raises:
        OipError, RegionError: No region has this name.
    """
    if memory is Memory.CUDA:
        if name is None:
            return []
        raise OipError(f"Unable to find cuda shared memory region: '{name}'", Code.NOT_FOUND)
    return [
        {
            "name": region.name,
            "key": region.key,
            "offset": region.offset_bytes,
            "byte_size": region.size_bytes,
        }
        for region in files.status(name)
    ]


def register_cuda(files: RegionFiles, name: str) -> NoReturn:
    """Refuse a region of a GPU.

    Raises:
        OipError, RegionError: Always.
    """
    files.check_enabled()
    raise OipError(f"failed to register CUDA shared memory region: '{name}', GPUs not supported")


def unregister(files: RegionFiles, memory: Memory, name: str | None) -> None:
    """Remove a region, or all; an unknown name is ignored.

    Raises:
        RegionError: Clients may not name memory.
    """
    files.check_enabled()
    if memory is Memory.SYSTEM:
        files.unregister(name)
