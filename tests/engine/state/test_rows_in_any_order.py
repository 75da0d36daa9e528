"""Sessions' rows written, cleared, shared and dropped in any order, beside plain arrays."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.engine.state.test_cache_rows import ALIGNED, CROSSING, TINY
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.page_pool import PagePool

NAMES = {"aligned": ALIGNED, "crossing": CROSSING, "tiny": TINY}


@dataclass
class Text:
    """Rows of a session, and what they should be."""

    rows: CacheRows
    wanted: dict[str, NDArray[Any]] = field(default_factory=dict)
    length: int = 0

    def __post_init__(self) -> None:
        if not self.wanted:
            self.wanted = {name: np.zeros_like(a) for name, a in self.rows.arrays.items()}

    def write(self, count: int, random: np.random.Generator) -> None:
        start, stop = self.length, self.length + count
        self.rows.reach(start, stop)
        for name in self.wanted:
            part = self.rows.part(name, start, stop)
            part[...] = random.integers(1, 99, part.shape)
            self.wanted[name][:, :, start:stop] = part
        self.length = stop

    def cut(self, length: int) -> None:
        self.rows.clear(length, self.length)
        for array in self.wanted.values():
            array[:, :, length:] = 0
        self.length = length

    def check(self) -> None:
        for name, array in self.wanted.items():
            np.testing.assert_array_equal(
                self.rows.part(name, 0, self.length), array[:, :, : self.length]
            )

    def forked(self, rows: CacheRows) -> "Text":
        """Return a text that goes on from this one in new rows."""
        rows.show(self.rows, self.length)
        return Text(rows, {name: a.copy() for name, a in self.wanted.items()}, self.length)


def act(texts: list[Text], new: Callable[[], CacheRows], random: np.random.Generator) -> None:
    """Write to a text, cut, fork or drop it."""
    text, action = texts[random.integers(len(texts))], random.integers(5)
    most = next(iter(text.wanted.values())).shape[2]
    if action < 2 and text.length < most:
        text.write(int(random.integers(1, most - text.length + 1)), random)
        for name, array in text.wanted.items():  # rows that are not in use are zero
            np.testing.assert_array_equal(text.rows.arrays[name], array)
    elif action == 2:
        text.cut(int(random.integers(0, text.length + 1)))
    elif action == 3 and len(texts) < 6:
        texts.append(text.forked(new()))
    elif action == 4 and len(texts) > 1:
        texts.remove(text)


def page_count(texts: list[Text]) -> int:
    """Return the pages that texts have, those of shared files once."""
    files = {id(shared): shared for each in texts for shared in each.rows._shared}
    own = sum(each.rows._own(each.rows._cover, each.rows._backed) for each in texts)
    return own + sum(int((shared.high - shared.low).sum()) for shared in files.values())


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_plain_arrays(kind: str, seed: int) -> None:
    random, pool = np.random.default_rng(seed), PagePool(10**6, evicts=False)
    new = partial(CacheRows, NAMES[kind], pool)
    texts = [Text(new())]
    for _ in range(25):
        act(texts, new, random)
        for index in range(len(texts)):
            texts[index].check()
        assert pool.used == page_count(texts)
    texts.clear()
    assert pool.used == 0
