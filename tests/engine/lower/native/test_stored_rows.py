"""Rows of caches in narrow types: appended by the rule, and read by attention as they lie."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.lower.native.test_counted_attention import LEVELS, operands, shared
from tests.engine.stored_rows import TYPES, stored, widened
from tests.engine.test_native import run_kernel
from tightship._core import NativeKernel

Rule = NativeKernel.AttentionRule


def appended(rows, kind, strides=None):
    """Cache of [1, heads, 7, ...] after an append of rows [1, heads, 3, width] at step 2."""
    _, heads, steps, width = rows.shape
    cache = stored(np.zeros((1, heads, 7, width), np.float32), kind)
    sizes = (1, heads, 7, steps, 4 * width)
    own = list(rows.strides[:3]) if strides is None else strides
    kernel = NativeKernel.append("node", sizes, own, True, False, kind, width)
    run_kernel(kernel, cache, rows, np.array([2]), cache)
    return cache


SPECIAL = [0.0, -0.0, 1e-45, 5e-8, 6.1e-5, 65504.0, 65520.0, 1e38, 2.5, 3.5, 1 / 3]


@pytest.mark.parametrize("kind", TYPES)
@given(st.integers(1, 70), st.floats(1e-42, 1e36), st.integers(0, 9), st.booleans())
def test_appended_rows_are_rounded_by_the_rule_to_the_bit(kind, width, size, seed, is_moved):
    random = np.random.default_rng(seed)
    rows = (random.standard_normal((1, 2, 3, width)) * size).astype(np.float32)
    rows[0, 0, 1] = random.choice(np.array(SPECIAL, np.float32), width)
    if is_moved:  # as heads lie beside each other before a Transpose
        rows = np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
    cache = appended(rows, kind)
    assert cache[:, :, 2:5].tobytes() == stored(rows, kind).tobytes()
    assert not cache[:, :, :2].view(np.uint8).any()
    assert not cache[:, :, 5:].view(np.uint8).any()


@given(st.integers(1, 200), st.integers(0, 5))
def test_int8_is_within_half_a_scale(width, seed):
    rows = np.random.default_rng(seed).standard_normal((1, 1, 3, width)).astype(np.float32)
    found = widened(appended(rows, "int8")[:, :, 2:5], "int8")
    most = np.abs(rows).max(-1, keepdims=True)
    assert (np.abs(found - rows) <= most / 254 * (1 + 1e-5)).all()


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_nan_as_int8_and_alone(number):
    rows = np.ones((1, 1, 3, 5), np.float32)
    rows[0, 0, 1, 2] = number
    found = widened(appended(rows, "int8")[:, :, 2:5], "int8")
    assert np.isnan(found[0, 0, 1]).all()
    np.testing.assert_array_equal(found[0, 0, [0, 2]], 1)


def test_parts_of_rows_are_refused():
    with pytest.raises(ValueError, match="parts of rows"):
        NativeKernel.append("node", (1, 1, 7, 3, 24), [72, 72, 24], True, False, "int8", 4)
    with pytest.raises(ValueError, match="cannot be stored as `int4`"):
        NativeKernel.append("node", (1, 1, 7, 3, 24), [72, 72, 24], True, False, "int4", 6)


def attended(query, key, value, length, rule, kinds=(), threads=1, *, most="avx512"):
    """Run attention over [batch, heads, groups, queries, depth] and caches of a type."""
    *outer, queries, depth = query.shape
    width = value.shape[-1] - (4 if kinds[1:] == ("int8",) else 0)
    target = np.full((*outer, queries, width), 7, np.float32)
    strides = [list(query.strides), shared(key), shared(value), [0, 0, 0], list(target.strides)]
    kernel = NativeKernel.attention(
        "node", outer, (queries, key.shape[-2], depth, width), rule, strides, *kinds, most=most
    )
    scratch = np.full(kernel.scratch_bytes(threads) // 4, np.nan, np.float32)
    lengths = np.array([length], np.int64)
    run_kernel(kernel, query, key, value, lengths, target, scratch, threads=threads)
    return target


@pytest.mark.parametrize("form", [(kind, most) for kind in TYPES for most in LEVELS])
@given(
    st.sampled_from([(1, 1, 1), (2, 3, 1), (1, 2, 4), (2, 1, 7)]),
    st.sampled_from([1, 2, 3, 4, 16, 17, 50, 130]),
    st.integers(1, 600),
    st.sampled_from([(0, -1), (0, 40), (-1, 20)]),
    st.sampled_from([(64, 64), (16, 80), (13, 33)]),
    st.integers(1, 3),
)
def test_attention_reads_stored_rows(form, heads, queries, length, bounds, columns, threads):
    kind, most = form
    query, *caches = operands(*heads, queries, 640, *columns, lengths=[length])
    narrow = [stored(each, kind) for each in caches]
    wide = [widened(each, kind) for each in narrow]
    ahead, behind = bounds
    rule = Rule(0.3, ahead=ahead, behind=behind, counted=True, zero_if_unseen=True)
    found = attended(query, *narrow, length, rule, (kind, kind), threads, most=most)
    wanted = attended(query, *wide, length, rule, threads=threads, most=most)
    if kind == "int8":  # scores are scaled once, rather than each key
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=2e-5)
    else:
        assert found.tobytes() == wanted.tobytes()


def test_keys_and_values_may_have_different_types_and_turned_rows():
    random = np.random.default_rng(3)
    query, key, value = (random.standard_normal((1, 2, n, 16), np.float32) for n in (3, 64, 64))
    half = stored(key, "float16").transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2)
    rule = Rule(0.3, counted=True)
    found = attended(query[:, :, None], half, value, 50, rule, ("float16", "float32"))
    wanted = attended(query[:, :, None], widened(half, "float16"), value, 50, rule)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_few_queries_need_no_copy_of_a_block():
    sizes = set()
    for kind in ("float32", *TYPES):
        item = {"float32": 4, "int8": 1}.get(kind, 2)
        row = 64 * item + 4 * (kind == "int8")
        strides = [[256, 256, 4], [0, row, item], [0, row, item], [0], [256, 256, 4]]
        rule, shape = Rule(0.3, counted=True), (1, 512, 64, 64)
        kernel = NativeKernel.attention("node", [1], shape, rule, strides, kind, kind)
        sizes.add(kernel.scratch_bytes(1))
    assert len(sizes) == 1


def test_scratch_holds_a_block_and_no_cache():
    rule = Rule(0.3, counted=True)
    for queries in (1, 64):
        sizes = [
            NativeKernel.attention(
                "node", [1], (queries, keys, 64, 64), rule,
                [[64 * 256 * queries, 256, 4], [68 * keys, 68, 1], [68 * keys, 68, 1], [0],
                 [256 * queries, 256, 4]], "int8", "int8",
            ).scratch_bytes(1)
            for keys in (512, 65536)
        ]  # fmt: skip
        assert sizes[0] == sizes[1] < 1 << 19


def test_int8_rows_that_do_not_lie_together_are_refused():
    strides = [[64, 64, 4], [800, 1, 20], [800, 20, 1], [0], [64, 64, 4]]
    with pytest.raises(ValueError, match="rows that do not lie together"):
        NativeKernel.attention(
            "node", [1], (1, 20, 16, 16), Rule(0.3, counted=True), strides, "int8", "int8"
        )
