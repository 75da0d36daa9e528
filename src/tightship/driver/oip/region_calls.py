"""The calls about shared memory: of the system, and of CUDA as a build without it answers."""

import enum
from typing import Any, NoReturn

from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Code


class Memory(enum.Enum):
    """Whose memory a call is about."""

    SYSTEM = enum.auto()
    CUDA = enum.auto()


def status(files: RegionFiles, memory: Memory, name: str | None) -> list[dict[str, Any]]:
    """All regions, or the one of a name.

    Raises:
        OipError, RegionError: There is none of that name.
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
    """Remove a region, or all; an unknown one is no error.

    Raises:
        RegionError: Clients may name no memory.
    """
    files.check_enabled()
    if memory is Memory.SYSTEM:
        files.unregister(name)
