"""The kernel of attention, run outside any model, against sums in float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_native import run_kernel
from tightship._core import NativeKernel

Rule = NativeKernel.AttentionRule


def attended(arrays, sizes, rule, masks=(), threads=1):
    """Target of the kernel, heads side by side, on arrays [batch, heads, rows, columns]."""
    batch, heads, queries, _, _, width = sizes
    target = np.full((batch, queries, heads, width), np.nan, np.float32).transpose(0, 2, 1, 3)
    strides = [list(array.strides) for array in (*arrays, *masks, target)]
    kernel = NativeKernel.attention("node", [batch, heads], sizes[2:], rule, strides)
    scratch = np.full(kernel.scratch_bytes(threads) // 4, np.nan, np.float32)
    run_kernel(kernel, *arrays, *masks, target, scratch, threads=threads)
    return target


def wanted(arrays, scale, change=lambda scores: scores):
    query, key, value = (array.astype(np.float64) for array in arrays)
    scores = change(np.einsum("bhqd,bhkd->bhqk", query, key) * scale)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bhqk,bhkw->bhqw", weights / weights.sum(-1, keepdims=True), value)


def operands(sizes, seed=0):
    """Queries, keys and values as transposed views of [batch, rows, heads, columns]."""
    batch, heads, queries, keys, depth, width = sizes
    random = np.random.default_rng(seed)
    return [
        random.standard_normal((batch, rows, heads, columns), np.float32).transpose(0, 2, 1, 3)
        for rows, columns in ((queries, depth), (keys, depth), (keys, width))
    ]


SIZES = st.tuples(
    st.integers(1, 2), st.integers(1, 3), st.integers(1, 130), st.integers(1, 600),
    st.sampled_from([1, 8, 13, 16, 64]), st.sampled_from([1, 8, 13, 33, 64, 80]),
)  # fmt: skip


@given(SIZES, st.integers(1, 3))
def test_any_sizes_are_right_with_any_mask(sizes, threads):
    arrays = operands(sizes)
    batch, _, queries, keys, *_ = sizes
    random = np.random.default_rng(1)
    added = random.standard_normal((batch, 1, 1, keys), np.float32)
    shape = (batch, sizes[1], queries, keys)
    kept = random.random((queries, keys)) < 0.7
    ahead = max(keys - queries, 0)
    numbers, flags = np.broadcast_to(added, shape), np.broadcast_to(kept, shape)
    cases = [
        (Rule(0.3), (), lambda s: s),
        (Rule(0.3, "added"), (numbers,), lambda s: s + added),
        (Rule(0.3, "kept", -3e38), (flags,), lambda s: np.where(kept, s, -3e38)),
        (Rule(0.3, "hidden", 0.5), (flags,), lambda s: np.where(kept, 0.5, s)),
        (Rule(0.3, "added", ahead=ahead), (numbers,),
         lambda s: np.where(np.tri(queries, keys, ahead) > 0, s + added, -np.inf)),
    ]  # fmt: skip
    for rule, masks, change in cases:
        found = attended(arrays, sizes, rule, masks, threads)
        np.testing.assert_allclose(found, wanted(arrays, 0.3, change), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("keys", [5, 300])
def test_a_query_that_sees_nothing_is_undefined_or_zero(keys):
    sizes = (1, 2, 7, keys, 16, 13)
    arrays = operands(sizes)
    kept = np.ones((7, keys), bool)
    kept[3] = False
    flags = np.broadcast_to(kept, (1, 2, 7, keys))
    found = attended(arrays, sizes, Rule(1.0, "kept", -np.inf), (flags,))
    assert np.isnan(found[:, :, 3]).all()
    assert np.isfinite(np.delete(found, 3, 2)).all()
    zeroed = attended(arrays, sizes, Rule(1.0, "kept", -np.inf, zero_if_undefined=True), (flags,))
    assert (zeroed[:, :, 3] == 0).all()
    np.testing.assert_array_equal(np.delete(zeroed, 3, 2), np.delete(found, 3, 2))


@pytest.mark.parametrize("keys", [40, 600])
def test_a_score_that_is_no_number_undefines_its_query_only(keys):
    sizes = (1, 1, 9, keys, 16, 16)
    arrays = operands(sizes)
    arrays[0][0, 0, 4, 2] = np.nan
    found = attended(arrays, sizes, Rule(1.0))
    assert np.isnan(found[0, 0, 4]).all()
    assert np.isfinite(np.delete(found, 4, 2)).all()


def test_large_scores_do_not_overflow():
    sizes = (1, 1, 50, 700, 16, 16)
    arrays = operands(sizes)
    found = attended(arrays, sizes, Rule(1000.0))
    np.testing.assert_allclose(found, wanted(arrays, 1000.0), rtol=1e-3, atol=1e-4)


def test_keys_may_come_turned_and_operands_repeated():
    sizes = (2, 3, 20, 70, 16, 24)
    query, key, value = operands(sizes)
    turned = np.ascontiguousarray(key.transpose(0, 1, 3, 2)).transpose(0, 1, 3, 2)
    one = np.broadcast_to(value[:1, :1], value.shape)
    found = attended((query, turned, one), sizes, Rule(0.3))
    np.testing.assert_allclose(found, wanted((query, key, one), 0.3), rtol=1e-4, atol=1e-5)


def test_an_unknown_mask_is_refused():
    with pytest.raises(ValueError, match="Unknown kind of mask `tall`"):
        Rule(1.0, "tall")
