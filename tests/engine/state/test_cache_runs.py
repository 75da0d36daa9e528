"""Pages of runs: those that rows need, against a count of all bytes."""

import numpy as np
import pytest

from tightship.engine.state.cache_runs import PAGE, CacheRuns
from tightship.engine.state.decoder import Cache
from tightship.engine.state.pairs import CachePair
from tightship.graph import DType


def cache(rows: int, length: int, dtype: DType = DType.FLOAT32, axis: int = 2) -> Cache:
    shape = [1, 3, 1, length]
    shape[axis] = rows
    return Cache(CachePair("a", "b", axis), dtype, tuple(shape), grows=True)


@pytest.mark.parametrize(
    "caches",
    [
        [cache(64, 64), cache(64, 64)],
        [cache(50, 24), cache(50, 8, DType.FLOAT16)],
        [cache(3, 4), cache(3, 4), cache(3, 4)],
        [cache(70, 33, axis=1)],
    ],
)
def test_pages_have_the_bytes_of_their_rows(caches: list[Cache]) -> None:
    runs = CacheRuns.of(caches)
    pages = -(-runs.size_bytes // PAGE)
    assert int((runs.end - runs.first).sum()) == pages
    for rows in range(runs.rows + 1):
        spans = list(zip(runs.starts, runs.after(rows), strict=True))
        touched = {
            page
            for low, high in (spans if rows else [])
            for page in range(low // PAGE, -(-high // PAGE))
        }
        owned = zip(runs.first, runs.needed(rows), strict=True)
        needed = {page for low, high in owned for page in range(low, high)}
        assert touched <= needed
        assert len(needed) == runs.page_count(rows) <= pages
        for (low, high), inner, whole in zip(spans, runs.inner, runs.whole(rows), strict=True):
            assert inner == whole or low <= inner * PAGE < whole * PAGE <= high
        assert runs.rows_in(runs.needed(rows)) >= rows
    np.testing.assert_array_equal(runs.needed(0), runs.first)
