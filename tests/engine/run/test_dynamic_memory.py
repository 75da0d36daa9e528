import gc
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.at_once import at_once
from tightship._core import DynamicMemory, DynamicPools

KIB, MIB = 1 << 10, 1 << 20


def bound_of(limit_bytes):
    return DynamicMemory(DynamicPools(64 * MIB), limit_bytes)


SLACK = 8 * KIB
"""More than an allocator adds to a request of any size, pages included."""
SMALL_SLACK = 64
"""More than it adds to a small one."""


def test_an_array_within_the_bound_is_made_and_one_beyond_is_refused():
    with bound_of(MIB) as bound:
        array = np.ones(MIB // 2, np.uint8)
        with pytest.raises(MemoryError):
            np.ones(MIB // 2 + SLACK, np.uint8)
        assert array.all()
    assert MIB // 2 <= bound.live_bytes <= MIB // 2 + SLACK
    wanted = bound.live_bytes + MIB // 2 + SLACK
    assert wanted <= bound.refused_bytes <= wanted + SLACK


@pytest.mark.parametrize("make", [np.empty, np.zeros, np.ones])
def test_every_way_to_make_an_array_is_bounded(make):
    with bound_of(KIB):
        with pytest.raises(MemoryError):
            make(2 * KIB, np.uint8)
        assert make(KIB // 2, np.uint8).nbytes == KIB // 2


def test_results_and_temporaries_of_operations_count():
    x = np.ones(MIB, np.float32)
    with bound_of(9 * MIB) as bound:
        y = (x + 1) * 2
        assert 4 * MIB <= bound.live_bytes <= 4 * MIB + SLACK
        with pytest.raises(MemoryError):
            np.concatenate([y, y])
    with bound_of(3 * MIB), pytest.raises(MemoryError):
        np.add(x, 1)


@given(st.lists(st.integers(0, 3000), max_size=12))
def test_the_limit_holds_at_every_moment(sizes):
    bound, kept = bound_of(8 * KIB), []
    with bound:
        for size in sizes:
            try:
                kept.append(np.empty(size, np.uint8))
            except MemoryError:
                assert bound.refused_bytes > 8 * KIB
            assert sum(a.nbytes for a in kept) <= bound.live_bytes <= 8 * KIB
    assert bound.live_bytes <= bound.peak_bytes <= 8 * KIB
    kept.clear()
    assert bound.live_bytes == 0


def test_a_refused_array_leaves_nothing_counted():
    bound = bound_of(KIB)
    with bound, pytest.raises(MemoryError):
        np.zeros(1 << 40, np.uint8)
    assert (bound.live_bytes, bound.peak_bytes) == (0, 0)
    assert 1 << 40 <= bound.refused_bytes <= (1 << 40) + SLACK


def test_an_array_counts_until_it_is_freed_be_it_after_the_scope():
    with bound_of(MIB) as bound:
        array = np.ones(100 * KIB, np.uint8)
        view = array[:10]
    del array
    assert bound.live_bytes >= 100 * KIB
    outside = np.ones(MIB, np.uint8)
    assert bound.live_bytes < 200 * KIB
    assert outside.all()
    del view
    assert bound.live_bytes == 0
    assert bound.peak_bytes >= 100 * KIB


def test_arrays_outlive_the_bound():
    with bound_of(MIB):
        arrays = [np.full(10_000, number, np.uint8) for number in range(5)]
    gc.collect()
    assert [int(a.sum()) for a in arrays] == [10_000 * number for number in range(5)]
    arrays[0] = np.resize(arrays[0], 20_000)
    arrays.clear()


def test_an_array_of_outside_is_not_counted_when_it_is_freed_inside():
    array = np.ones(MIB, np.uint8)
    with bound_of(KIB) as bound:
        del array
        assert bound.live_bytes == 0


def test_an_array_that_grows_keeps_its_elements_and_is_counted_once():
    with bound_of(MIB) as bound:
        array = np.arange(1000, dtype=np.int64)
        array.resize(50_000, refcheck=False)
        assert array[:1000].tolist() == list(range(1000))
        assert not array[1000:].any()
        assert 400_000 <= bound.live_bytes <= 400_000 + SLACK
        array.resize(10, refcheck=False)
        assert array.tolist() == list(range(10))
        assert 80 <= bound.live_bytes <= 80 + SMALL_SLACK
    assert bound.peak_bytes >= 408_000


def test_an_array_that_cannot_grow_stays_as_it_is():
    with bound_of(100 * KIB) as bound:
        array = np.arange(1000, dtype=np.int64)
        with pytest.raises(MemoryError):
            array.resize(50_000, refcheck=False)
        assert array.tolist() == list(range(1000))
        assert 8000 <= bound.live_bytes <= 8000 + SMALL_SLACK


def test_an_array_of_outside_may_grow_inside():
    array = np.arange(10)
    with bound_of(KIB) as bound:
        array.resize(10_000, refcheck=False)
        assert array[:10].tolist() == list(range(10))
        assert bound.live_bytes == 0


def test_the_inner_of_two_scopes_counts():
    outer, inner = bound_of(MIB), bound_of(MIB)
    with outer:
        first = np.ones(10 * KIB, np.uint8)
        with inner:
            second = np.ones(20 * KIB, np.uint8)
        third = np.ones(40 * KIB, np.uint8)
    assert 50 * KIB <= outer.live_bytes <= 50 * KIB + SMALL_SLACK * 2
    assert 20 * KIB <= inner.live_bytes <= 20 * KIB + SMALL_SLACK
    assert [int(a.sum()) // KIB for a in (first, second, third)] == [10, 20, 40]


def test_a_bound_may_be_entered_again_and_counts_on():
    bound = bound_of(100 * KIB)
    with bound:
        kept = np.ones(60 * KIB, np.uint8)
    with bound, pytest.raises(MemoryError):
        np.ones(60 * KIB, np.uint8)
    del kept
    with bound:
        assert np.ones(60 * KIB, np.uint8).all()


def test_an_exception_restores_what_was_before():
    bound = bound_of(KIB)
    with pytest.raises(ValueError, match="KiB"), bound:
        int("KiB")
    assert np.ones(MIB, np.uint8).all()
    assert bound.peak_bytes < KIB


def test_an_exception_in_the_inner_scope_restores_the_outer():
    with bound_of(MIB) as outer:
        with pytest.raises(MemoryError), bound_of(KIB):
            np.ones(2 * KIB, np.uint8)
        array = np.ones(2 * KIB, np.uint8)
        assert outer.live_bytes >= array.nbytes


def test_other_threads_are_not_bounded():
    made = []
    with bound_of(KIB) as bound:
        thread = threading.Thread(target=lambda: made.append(np.ones(MIB, np.uint8)))
        thread.start()
        thread.join()
        assert bound.live_bytes == 0
    assert made[0].nbytes == MIB


def test_threads_may_share_a_bound():
    bound, made = bound_of(MIB), []

    def work():
        with bound:
            made.extend(np.ones(KIB, np.uint8) for _ in range(200))

    at_once(lambda _: work(), range(4))
    assert len(made) * KIB <= bound.live_bytes <= len(made) * (KIB + SMALL_SLACK)
    made.clear()
    assert bound.live_bytes == 0
