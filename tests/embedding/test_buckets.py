"""Buckets of texts by length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.embedding.buckets import TOKENS, Bucket, buckets_of, runs_of


def test_buckets_serve_one_text_of_any_length_and_several_short_ones() -> None:
    assert buckets_of(128) == [
        Bucket(128, 1), Bucket(96, 1), Bucket(64, 1), Bucket(32, 1), Bucket(16, 1),
        Bucket(16, 16), Bucket(32, 8), Bucket(64, 4), Bucket(96, 2), Bucket(128, 2),
    ]  # fmt: skip
    assert [each.length for each in buckets_of(512) if each.rows == 1] == [
        512, 384, 256, 192, 128, 96, 64, 32, 16,
    ]  # fmt: skip
    assert buckets_of(512)[-1] == Bucket(128, 2)
    assert buckets_of(100)[:3] == [Bucket(100, 1), Bucket(96, 1), Bucket(64, 1)]
    assert buckets_of(9) == [Bucket(9, 1), Bucket(9, 28)]


@given(st.data(), st.sampled_from([9, 64, 100, 512]), st.integers(1, 12))
def test_each_text_runs_once_where_it_fits(data: st.DataObject, context: int, count: int) -> None:
    lengths = data.draw(st.lists(st.integers(1, context), max_size=60))
    buckets = buckets_of(context)[:count]
    runs = list(runs_of(lengths, buckets))
    assert sorted(place for _, places in runs for place in places) == list(range(len(lengths)))
    for bucket, places in runs:
        assert bucket in buckets
        assert 0 < len(places) <= bucket.rows
        assert all(lengths[place] <= bucket.length for place in places)
        assert bucket.rows == 1 or 2 * len(places) > bucket.rows


@pytest.mark.parametrize(("count", "rows"), [(8, 1), (9, 16), (17, 16)])
def test_few_texts_do_not_fill_a_bucket(count: int, rows: int) -> None:
    assert next(runs_of([5] * count, buckets_of(64)))[0].rows == rows


def test_a_run_of_several_has_few_tokens() -> None:
    assert all(each.rows * each.length <= TOKENS for each in buckets_of(512) if each.rows > 1)
