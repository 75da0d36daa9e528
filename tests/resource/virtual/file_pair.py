"""A physical/virtual pair in Python: parts of a file in memory, mapped by the C library."""

import ctypes
import mmap
import os
from dataclasses import dataclass, field

from tightship.resource.virtual import PythonDevice

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_size_t
_LIBC.mmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_LIBC.munmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t]

_FAILED = ctypes.c_size_t(-1).value
_FIXED, _FIXED_NOREPLACE, _NORESERVE = 0x10, 0x100000, 0x4000


def _map(address: int, size_bytes: int, protection: int, flags: int, file: int, at: int) -> int:
    mapped: int = _LIBC.mmap(address, size_bytes, protection, flags, file, at)
    if mapped == _FAILED:
        raise OSError(ctypes.get_errno(), "mmap")
    return mapped


def _reserve(size_bytes: int, address: int = 0, flags: int = 0) -> int:
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE | flags
    return _map(address, size_bytes, 0, kind, -1, 0)


@dataclass(slots=True, eq=False)
class Part:
    """A part of the file; of its own file, to be exact."""

    size_bytes: int
    file: int = field(init=False)

    def __post_init__(self) -> None:
        self.file = os.memfd_create("part")
        os.truncate(self.file, self.size_bytes)

    def __del__(self) -> None:
        os.close(self.file)


@dataclass(slots=True, eq=False)
class Addresses:
    """Reserved addresses that parts are mapped to."""

    size_bytes: int
    alignment: int
    address: int = field(init=False)
    _start: int = field(init=False)
    _reserved_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self._reserved_bytes = self.size_bytes + self.alignment
        self._start = _reserve(self._reserved_bytes)
        self.address = -(-self._start // self.alignment) * self.alignment

    def map(self, offset_bytes: int, parts: list[Part]) -> bool:
        address = self.address + offset_bytes
        for part in parts:
            flags = mmap.MAP_SHARED | _FIXED
            _map(address, part.size_bytes, mmap.PROT_READ | mmap.PROT_WRITE, flags, part.file, 0)
            address += part.size_bytes
        return True

    def unmap(self, offset_bytes: int, parts: list[Part]) -> bool:
        _reserve(sum(p.size_bytes for p in parts), self.address + offset_bytes, _FIXED)
        return True

    def extend(self, more_bytes: int) -> bool:
        behind = self.address + self.size_bytes
        slack = self._start + self._reserved_bytes - behind
        if more_bytes > slack:
            try:
                _reserve(more_bytes - slack, behind + slack, _FIXED_NOREPLACE)
            except OSError:
                return False
            self._reserved_bytes += more_bytes - slack
        self.size_bytes += more_bytes
        return True

    def __del__(self) -> None:
        _LIBC.munmap(self._start, self._reserved_bytes)


def file_pair() -> PythonDevice:
    """A device of such chunks and addresses."""
    return PythonDevice(Part, Addresses, maps_twice=True)
