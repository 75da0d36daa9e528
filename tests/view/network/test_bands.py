"""Colours of addresses."""

from hypothesis import given
from hypothesis import strategies as st

from tightship.view.network.bands import BANDS_MAX, bands_of, shares_of
from tightship.view.network.network import Value


def value(offset, size, start=0, stop=1):
    return Value("v", "activation", size, offset, start, stop)


def test_few_buffers_are_of_whole_bands():
    values = [value(0, 64), value(64, 64), value(0, 128, 2, 3)]
    bands = bands_of(values, 128)
    assert bands == (0, 64, 128)
    assert shares_of(values[0], bands) == [(0, 1.0)]
    assert shares_of(values[2], bands) == [(0, 0.5), (1, 0.5)]


def test_what_is_outside_the_arena_has_no_band():
    assert shares_of(value(-1, 64), (0, 64)) == []
    assert shares_of(value(0, 0), (0, 64)) == []
    assert bands_of([], 0) == (0, 0)
    assert shares_of(value(0, 64), (0, 0)) == []


def test_boundaries_of_the_most_bytes_are_kept():
    small = [value(1000 * index, 8) for index in range(1, 40)]
    bands = bands_of([value(0, 50_000, 0, 90), value(50_000, 50_000, 0, 90), *small], 100_000)
    assert len(bands) == BANDS_MAX + 1
    assert 50_000 in bands


@given(st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 4000)), min_size=1, max_size=60))
def test_bands_cover_the_arena_and_shares_are_of_all_bytes(rows):
    values = [value(offset, size) for offset, size in rows]
    arena = max(each.end_bytes for each in values)
    bands = bands_of(values, arena)
    assert (bands[0], bands[-1]) == (0, arena)
    assert list(bands) == sorted(set(bands))
    assert len(bands) <= BANDS_MAX + 1
    for each in values:
        assert abs(sum(share for _, share in shares_of(each, bands)) - 1) < 1e-9
