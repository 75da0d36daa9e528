"""Memory of caches: pages come as rows are reached, go as they are cleared, and can be shared."""

import gc
from collections.abc import Callable

import numpy as np
import pytest

from tests.process_memory import data_bytes, written_pss_bytes
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.cache_runs import PAGE
from tightship.engine.state.decoder import Cache
from tightship.engine.state.page_pool import PagePool
from tightship.engine.state.pairs import CachePair
from tightship.errors import CapacityError, OutOfMemoryError
from tightship.graph import DType

CONTEXT = 300


def cache(name: str, rows: int, dtype: DType = DType.FLOAT32, length: int = 16) -> Cache:
    return Cache(CachePair(name, f"new {name}", 2), dtype, (1, 2, rows, length), grows=True)


ALIGNED = [cache("a", 256), cache("b", 256, DType.FLOAT16)]
CROSSING = [cache("a", CONTEXT), cache("b", CONTEXT, DType.FLOAT16, 40), cache("c", CONTEXT)]
TINY = [cache("a", 16), cache("b", 16)]


def write(rows: CacheRows, start: int, stop: int, seed: int = 1) -> None:
    """Reach rows and write numbers that depend on the row alone."""
    rows.reach(start, stop)
    for index, name in enumerate(rows.arrays):
        part = rows.part(name, start, stop)
        part[...] = (np.arange(start, stop)[:, None] * 7 + index + seed) % 1000 + 1


def check(rows: CacheRows, count: int, seed: int = 1) -> None:
    """Compare the first rows with what `write` wrote, and the others with zeros."""
    for index, name in enumerate(rows.arrays):
        wanted = (np.arange(count)[:, None] * 7 + index + seed) % 1000 + 1
        part = rows.part(name, 0, count)
        np.testing.assert_array_equal(part, np.broadcast_to(wanted, part.shape))
        assert not rows.arrays[name][:, :, count:].any()


@pytest.fixture(params=[True, False], ids=["reserved", "as they come"])
def make(request: pytest.FixtureRequest) -> Callable[[list[Cache]], CacheRows]:
    return lambda caches: CacheRows(caches, reserved=request.param)


@pytest.mark.parametrize("caches", [ALIGNED, CROSSING, TINY], ids=["aligned", "crossing", "tiny"])
def test_rows_are_zero_until_they_are_written_and_once_they_are_cleared(make, caches) -> None:
    rows, most = make(caches), caches[0].shape[2]
    check(rows, 0)
    for start, stop in ((0, 3), (3, 16), (16, most)):
        if start < stop <= most:
            write(rows, start, stop)
            check(rows, stop)
    for kept, before in ((most - 1, most), (most // 2 + 1, most - 1), (3, most // 2 + 1), (0, 3)):
        rows.clear(kept, before)
        check(rows, kept)
    write(rows, 0, most)
    check(rows, most)


@pytest.mark.parametrize("caches", [ALIGNED, CROSSING, TINY], ids=["aligned", "crossing", "tiny"])
def test_pages_are_counted_as_rows_need_them(caches) -> None:
    pool = PagePool(10_000, evicts=False)
    rows, most = CacheRows(caches, pool), caches[0].shape[2]
    runs = rows._runs
    for start, stop in ((0, 1), (1, 10), (10, most)):
        write(rows, start, stop)
        assert pool.used == rows.pages.count == runs.page_count(stop)
    assert pool.used == -(-runs.size_bytes // PAGE)
    for kept, before in ((10, most), (1, 10), (0, 1)):
        rows.clear(kept, before)
        assert pool.used == runs.page_count(kept)
    write(rows, 0, most)
    del rows
    gc.collect()
    assert pool.used == 0


def test_a_full_pool_changes_nothing() -> None:
    pool = PagePool(9, evicts=False)
    rows = CacheRows(ALIGNED, pool)
    write(rows, 0, 64)
    held = pool.used
    with pytest.raises(CapacityError, match=r"of the pool's 36\.0 KiB are free"):
        rows.reach(64, 256)
    assert pool.used == held == rows.pages.count
    check(rows, 64)


def test_memory_of_rows_that_are_not_reached_is_not_the_processs() -> None:
    big = [cache(str(i), 1 << 17) for i in range(8)]
    before, resident = data_bytes(), written_pss_bytes()
    rows = CacheRows(big)
    assert data_bytes() - before < 1 << 20
    write(rows, 0, 100)
    assert data_bytes() - before < 1 << 20
    assert written_pss_bytes() - resident < 2 << 20
    write(rows, 100, 1 << 14)
    assert data_bytes() - before >= 1 << 24
    assert written_pss_bytes() - resident > 15 << 20
    rows.clear(100, 1 << 14)
    assert data_bytes() - before < 1 << 20
    assert written_pss_bytes() - resident < 2 << 20
    reserved = CacheRows(big, reserved=True)
    assert data_bytes() - before >= 1 << 27
    write(reserved, 0, 100)
    assert written_pss_bytes() - resident < 4 << 20


@pytest.mark.parametrize("caches", [ALIGNED, CROSSING, TINY], ids=["aligned", "crossing", "tiny"])
@pytest.mark.parametrize("count", [1, 15, 130, 200])
def test_shared_rows_part_as_they_are_written(make, caches, count) -> None:
    most = caches[0].shape[2]
    count = min(count, most - 2)
    one, other = make(caches), CacheRows(caches)
    write(one, 0, count)
    other.show(one, count)
    check(other, count)
    write(one, count, most, seed=5)
    check(other, count)
    write(other, count, count + 2)
    check(other, count + 2)
    third = CacheRows(caches)
    third.show(other, count + 2)
    other.clear(count // 2, count + 2)
    write(other, count // 2, most)
    check(other, most)
    check(third, count + 2)
    del other
    gc.collect()
    third.clear(0, count + 2)
    check(third, 0)
    write(third, 0, most, seed=9)
    check(third, most, seed=9)


def test_files_that_overlap_are_shown_up_to_one_another() -> None:
    one, other = CacheRows(ALIGNED), CacheRows(ALIGNED)
    write(one, 0, 256)
    other.show(one, 256)
    one.clear(128, 256)
    for name in one.arrays:
        one.reach(128, 256)
        one.part(name, 128, 256)[...] = 3
    third, fourth = CacheRows(ALIGNED), CacheRows(ALIGNED)
    third.show(one, 256)
    fourth.show(third, 250)
    for rows, count in ((one, 256), (third, 256), (fourth, 250)):
        for name in rows.arrays:
            np.testing.assert_array_equal(rows.part(name, 0, 128), other.part(name, 0, 128))
            assert np.all(rows.part(name, 128, count) == 3)
    check(other, 256)


def test_a_shared_page_is_counted_and_held_once() -> None:
    pool = PagePool(10_000, evicts=False)
    big = [cache(str(i), 4096) for i in range(8)]
    one = CacheRows(big, pool)
    write(one, 0, 4000)
    held, before = pool.used, written_pss_bytes()
    others = [CacheRows(big, pool) for _ in range(4)]
    for other in others:
        other.show(one, 4000)
    assert pool.used == held + 4 * 16  # 4000 rows are 62.5 pages of each of 16 runs
    assert written_pss_bytes() - before < 1 << 20
    del one
    others, other = others[:1], others[0]
    gc.collect()
    assert pool.used == held
    others[0].clear(1000, 4000)
    assert pool.used == others[0]._runs.page_count(1000)
    write(others[0], 1000, 1001)
    check(others[0], 1001)


def test_what_the_pool_lacks_for_a_fork_is_refused() -> None:
    pool = PagePool(17, evicts=False)
    one = CacheRows(ALIGNED, pool)
    write(one, 0, 100)
    held, forks = pool.used, []
    for _ in range(2):
        forks.append(CacheRows(ALIGNED, pool))
        forks[-1].show(one, 100)
    with pytest.raises(CapacityError):
        CacheRows(ALIGNED, pool).show(one, 100)
    forks.clear()
    gc.collect()
    assert pool.used == held
    check(one, 100)


def test_more_than_the_machine_has_is_refused() -> None:
    with pytest.raises(OutOfMemoryError, match="smaller context"):
        CacheRows([cache("a", 1 << 40)])
    with pytest.raises(OutOfMemoryError, match="smaller context"):
        CacheRows([cache("a", 1 << 36)], reserved=True)
