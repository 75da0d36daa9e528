"""Constants by the location of their bytes, which are not read.

A plan needs only the dtype and the shape; `array()` is called when the constant is packed, and its
result is dropped right after.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tightship.brief import brief
from tightship.graph.layout import DType, element_count, size_bytes
from tightship.graph.mapped_file import MappedFile

Array = NDArray[np.generic]


READ_BYTES_MAX = 4 << 20
"""Constants of a file that are read into memory rather than where they are mapped.

A file just written lies in the page cache in tiles of up to 2 MiB, and Linux 6.18 maps a whole one
where a byte is touched: two of them for one row of a table.
"""


class Constant(Protocol):
    """Tensor known before the run."""

    @property
    def dtype(self) -> DType:
        """Type of the elements."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the constant."""

    def array(self) -> Array:
        """Return the elements, read-only, of shape `shape`; may be a view of a mapped file."""

    def release(self) -> None:
        """Give back the pages that `array()` brought in; `array()` may be called again."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Inline:
    """Small constant held in memory."""

    value: Array

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return DType.of(self.value.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the constant."""
        return self.value.shape

    def array(self) -> Array:
        """Return the elements, read-only."""
        return self.value

    def release(self) -> None:
        """Do nothing."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Mapped:
    """Little-endian dense bytes in a mapped file."""

    file: MappedFile
    offset_bytes: int
    dtype: DType
    shape: tuple[int, ...]

    def array(self) -> Array:
        """Return the elements, read-only."""
        size = size_bytes(self.dtype, self.shape)
        raw = self.file.bytes_at(self.offset_bytes, size)
        if self.file.is_mapped and size <= READ_BYTES_MAX:
            room = np.empty(size, np.uint8)
            self.file.read_into(self.offset_bytes, room.data)
            room.flags.writeable = False
            raw = room.data
        return np.frombuffer(raw, self.dtype.numpy, element_count(self.shape)).reshape(self.shape)

    def release(self) -> None:
        """Give back the pages of the file."""
        self.file.release()


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Fill:
    """Repeated value, which takes no memory until it is packed."""

    value: Array
    shape: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return DType.of(self.value.dtype)

    def array(self) -> Array:
        """Return the elements, read-only."""
        return np.broadcast_to(self.value.reshape(()), self.shape)

    def release(self) -> None:
        """Do nothing."""


def forget(constants: Iterable[Constant]) -> None:
    """Let go of the bytes of constants in memory, which must not be read again."""
    for constant in constants:
        if isinstance(constant, Mapped):
            constant.file.forget()


class Computed:
    """Base of constants that are computed from others on each access."""

    __slots__ = ()

    @property
    def sources(self) -> tuple[Constant, ...]:
        """Constants that it is computed from."""
        raise NotImplementedError

    @property
    def recipe(self) -> Hashable:
        """Key of the computation; None if it has none.

        Constants with equal recipes, types and sources have equal elements.
        """
        raise NotImplementedError


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Derived(Computed):
    """Constant that a function computes."""

    dtype: DType
    shape: tuple[int, ...]
    compute: Callable[[], Array]
    sources: tuple[Constant, ...] = ()
    recipe: Hashable = None
    _transient_bytes: int | None = field(default=None, init=False, repr=False)

    def array(self) -> Array:
        """Return the elements, read-only."""
        value = self.compute()
        assert value.shape == self.shape, (value.shape, self.shape)
        return value

    def release(self) -> None:
        """Give back what the sources hold."""
        for source in self.sources:
            source.release()

    @property
    def transient_bytes(self) -> int:
        """Bytes that `array()` holds while it computes: its result and derived sources."""
        if self._transient_bytes is None:
            own = size_bytes(self.dtype, self.shape)
            derived = [s.transient_bytes for s in self.sources if isinstance(s, Derived)]
            object.__setattr__(self, "_transient_bytes", own + max(derived, default=0))
        assert self._transient_bytes is not None
        return self._transient_bytes
