"""A column of names that is decoded where it is looked at."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Names(Sequence[str]):
    """n names in UTF-8 one after another; name i is the bytes `[stop[i - 1], stop[i])`."""

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
    """The column of some words; a column of names stays as it is."""
    if isinstance(words, Names):
        return words
    encoded = [word.encode() for word in words]
    lengths = np.fromiter((len(word) for word in encoded), np.int64)
    return Names(b"".join(encoded), np.cumsum(lengths, dtype=np.int64))
