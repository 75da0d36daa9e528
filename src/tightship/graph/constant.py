"""Where the bytes of a constant are, without reading them.

A plan needs only the dtype and the shape; `array()` is called when the constant
is packed, and what it returns is dropped right after.
"""

import mmap
import os
import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tightship.errors import FormatError
from tightship.graph.layout import DType, element_count, size_bytes

Array = NDArray[np.generic]


class Constant(Protocol):
    """A tensor known before the run."""

    @property
    def dtype(self) -> DType: ...
    @property
    def shape(self) -> tuple[int, ...]: ...

    def array(self) -> Array:
        """The elements, read-only, shape `shape`; may be a view of a mapped file."""

    def release(self) -> None:
        """Give back the pages that `array()` brought in; it may be called again."""


class MappedFile:
    """A file mapped read-only; its pages come in as they are read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map: mmap.mmap | memoryview | bytes = b""
        self._fd: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._fd)
        self.size_bytes = os.fstat(self._fd).st_size
        if self.size_bytes:
            self._map = mmap.mmap(self._fd, 0, access=mmap.ACCESS_READ)

    @classmethod
    def of_bytes(cls, data: bytes | memoryview, path: Path) -> "MappedFile":
        """A file whose bytes are in memory already; `path` is what messages call it."""
        file = cls.__new__(cls)
        file.path, file._map, file.size_bytes, file._fd = path, data, len(data), None
        return file

    def bytes_at(self, offset: int, size: int) -> memoryview:
        """The bytes `[offset, offset + size)`, not copied.

        Raises:
            FormatError: The range leaves the file.
        """
        if offset < 0 or size < 0 or offset + size > self.size_bytes:
            raise FormatError(
                f"`{self.path}` has {self.size_bytes} bytes, but a tensor needs bytes "
                f"[{offset}, {offset + size})."
            )
        return memoryview(self._map)[offset : offset + size]

    def read_into(self, offset: int, room: memoryview) -> None:
        """Fill `room` with the bytes from `offset` on; no page of the mapping comes in.

        Raises:
            FormatError: The file ends before.
        """
        if self._fd is None:
            room[:] = memoryview(self._map).cast("B")[offset : offset + len(room)]
            return
        while len(room):
            count = os.preadv(self._fd, [room], offset)
            if count == 0:
                raise FormatError(
                    f"`{self.path}` ends {len(room)} bytes early: it was cut while it was read."
                )
            offset, room = offset + count, room[count:]

    def release(self) -> None:
        """Drop all resident pages; they are read again when touched.

        All, because reading one page brings in its neighbours, dropped or not.
        """
        if isinstance(self._map, mmap.mmap):
            self._map.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True, eq=False)
class Inline:
    """A small constant held in memory."""

    value: Array

    @property
    def dtype(self) -> DType:
        return DType.of(self.value.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    def array(self) -> Array:
        return self.value

    def release(self) -> None:
        """Nothing to give back."""


@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """Little-endian dense bytes inside a mapped file."""

    file: MappedFile
    offset_bytes: int
    dtype: DType
    shape: tuple[int, ...]

    def array(self) -> Array:
        size = size_bytes(self.dtype, self.shape)
        raw = self.file.bytes_at(self.offset_bytes, size)
        return np.frombuffer(raw, self.dtype.numpy, element_count(self.shape)).reshape(self.shape)

    def release(self) -> None:
        self.file.release()


@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """One value repeated; takes no memory until it is packed."""

    value: Array
    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        return DType.of(self.value.dtype)

    def array(self) -> Array:
        return np.broadcast_to(self.value.reshape(()), self.shape)

    def release(self) -> None:
        """Nothing to give back."""


@dataclass(frozen=True, eq=False)
class Derived:
    """A constant computed from others each time it is asked for.

    Constants of equal recipes, types and sources have equal elements; None says nothing.
    """

    dtype: DType
    shape: tuple[int, ...]
    compute: Callable[[], Array]
    sources: tuple[Constant, ...] = ()
    recipe: Hashable = None

    def array(self) -> Array:
        value = self.compute()
        assert value.shape == self.shape, (value.shape, self.shape)
        return value

    def release(self) -> None:
        for source in self.sources:
            source.release()

    @cached_property
    def transient_bytes(self) -> int:
        """Bytes that `array()` holds while it computes: its result and derived sources."""
        inner = max((s.transient_bytes for s in self.sources if isinstance(s, Derived)), default=0)
        return size_bytes(self.dtype, self.shape) + inner
