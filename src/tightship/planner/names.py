"""Stores names as one column of bytes, which is decoded on access."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Names(Sequence[str]):
    """n names in UTF-8, concatenated; name i is the bytes `[stop[i - 1], stop[i])`."""

    text: bytes
    stop: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.stop)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[position] for position in range(*index.indices(len(self))))
        position = range(len(self))[index]
        start = int(self.stop[position - 1]) if position else 0
        return self.text[start : int(self.stop[position])].decode()


def names_of(words: Iterable[str]) -> Names:
    """Make a column of some words; a column of names is returned unchanged."""
    if isinstance(words, Names):
        return words
    encoded = [word.encode() for word in words]
    lengths = np.fromiter((len(word) for word in encoded), np.int64)
    return Names(b"".join(encoded), np.cumsum(lengths, dtype=np.int64))
