"""Attention over caches of which a run uses as many keys as it says, against sums in float64."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.test_native import run_kernel
from tightship._core import KernelError, NativeKernel

JUNK = np.nan
LEVELS = ("portable", "avx2", "avx512")
"""Instructions that loops are compiled for; those that the processor lacks run as older ones."""
Rule = NativeKernel.AttentionRule


def kernel_of(arrays, lengths, rule, extra=(), most="avx512"):
    """Kernel over [batch, heads, groups, rows, columns], with each operand's strides."""
    query, key, value = arrays
    batch, heads, groups, queries, depth = query.shape
    keys, width = value.shape[-2:]
    target = np.full((batch, queries, heads, groups, width), 7, np.float32)
    target = target.transpose(0, 2, 3, 1, 4)
    own = [0 if len(lengths) == 1 else lengths.strides[0], 0, 0]
    strides = [list(query.strides), shared(key), shared(value)]
    strides += [list(each.strides) for each in extra if each.ndim == 5]
    strides += [own, *([0, *each.strides] for each in extra if each.ndim == 2)]
    strides.append(list(target.strides))
    sizes = (queries, keys, depth, width)
    kernel = NativeKernel.attention("node", [batch, heads, groups], sizes, rule, strides, most=most)
    return kernel, target


def shared(array):
    """Strides of keys or values [batch, heads, rows, columns], which all groups share."""
    batch, heads, *last = array.strides
    return [batch, heads, 0, *last]


def attended(arrays, lengths, rule, extra=(), threads=1, most="avx512"):
    """Run the kernel; `extra` holds a mask of rank 5, then sinks of rank 2."""
    lengths = np.asarray(lengths, np.int64)
    kernel, target = kernel_of(arrays, lengths, rule, extra, most)
    scratch = np.full(kernel.scratch_bytes(threads) // 4, np.nan, np.float32)
    masks = [each for each in extra if each.ndim == 5]
    sinks = [each for each in extra if each.ndim == 2]
    run_kernel(kernel, *arrays, *masks, lengths, *sinks, target, scratch, threads=threads)
    return target


def operands(batch, heads, groups, queries, capacity, *columns, lengths):
    """Queries, keys and values; keys beyond a length are junk."""
    random = np.random.default_rng(1)
    query = random.standard_normal(
        (batch, heads, groups, queries, (columns or (16,))[0]), np.float32
    )
    caches = []
    for wide in columns or (16, 16):
        rows = random.standard_normal((batch, heads, 1000, wide), np.float32)
        cache = np.full((batch, heads, capacity, wide), JUNK, np.float32)
        cache[:, :, : min(capacity, 1000)] = rows[:, :, :capacity]
        caches.append(cache)
    for index in range(batch):
        for cache in caches:
            cache[index, :, lengths[index % len(lengths)] :] = JUNK
    return [query, *caches]


def wanted(arrays, lengths, scale, *, ahead=-1, behind=-1, cap=0.0, mask=None, sinks=None):
    """Compute the definition, one query at a time, in float64; zero for one that sees no key."""
    query, key, value = (array.astype(np.float64) for array in arrays)
    result = np.zeros((*query.shape[:-1], value.shape[-1]))
    for place in np.ndindex(query.shape[:-1]):
        batch, head, _, row = place
        count = lengths[batch % len(lengths)]
        position = count - query.shape[3] + row
        low = max(0, position - behind) if behind >= 0 else 0
        high = min(count, position + ahead + 1) if ahead >= 0 else count
        if high <= low:
            continue
        scores = key[batch, head, low:high] @ query[place] * scale
        scores = cap * np.tanh(scores / cap) if cap else scores
        scores = scores + (0 if mask is None else mask[place][low:high])
        weights = np.exp(scores - scores.max())
        more = 0 if sinks is None else np.exp(sinks[place[1:3]] - scores.max())
        result[place] = weights @ value[batch, head, low:high] / (weights.sum() + more)
    return result


def assert_near(found, want):
    np.testing.assert_allclose(found, want, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("most", LEVELS)
@given(
    st.sampled_from([(1, 1, 1), (2, 3, 1), (1, 2, 4), (2, 1, 7)]),
    st.sampled_from([1, 2, 3, 4, 16, 17, 50, 130]),
    st.lists(st.integers(1, 600), min_size=1, max_size=2),
    st.sampled_from([(-1, -1), (0, -1), (0, 0), (0, 40), (5, 300), (-1, 20)]),
    st.sampled_from([(16, 16), (64, 64), (13, 33), (8, 80)]),
    st.integers(1, 3),
)
def test_queries_see_the_keys_in_use(most, heads, queries, lengths, bounds, columns, threads):
    lengths = lengths[: heads[0]]
    arrays = operands(*heads, queries, 640, *columns, lengths=lengths)
    ahead, behind = bounds
    rule = Rule(0.3, ahead=ahead, behind=behind, counted=True, zero_if_unseen=True)
    found = attended(arrays, lengths, rule, threads=threads, most=most)
    assert_near(found, wanted(arrays, lengths, 0.3, ahead=ahead, behind=behind))


@pytest.mark.parametrize("queries", [1, 5, 60])
@pytest.mark.parametrize("length", [3, 256, 257, 700])
def test_results_and_scratch_are_the_same_for_every_capacity_and_number_of_threads(queries, length):
    rule = Rule(0.3, ahead=0, counted=True, zero_if_unseen=True)
    found, scratch = [], set()
    for capacity in (700, 900, 5000):
        arrays = operands(2, 2, 3, queries, capacity, lengths=[length])
        kernel, _ = kernel_of(arrays, np.zeros(1, np.int64), rule)
        scratch.add((kernel.scratch_bytes(1), kernel.scratch_bytes(2)))
        found += [attended(arrays, [length], rule, threads=threads) for threads in (1, 2, 3)]
    assert all(each.tobytes() == found[0].tobytes() for each in found)
    assert len(scratch) == 1


@pytest.mark.parametrize("queries", [1, 6, 70])
def test_soft_caps_come_before_masks_and_sinks_take_weight(queries):
    random = np.random.default_rng(2)
    arrays = operands(2, 2, 3, queries, 640, lengths=[500])
    mask = random.standard_normal((2, 2, 3, queries, 640), np.float32)
    mask[..., ::3] = -np.inf
    sinks = random.standard_normal((2, 3), np.float32) * 3
    rule = Rule(0.7, "added", ahead=0, cap=1.5, counted=True, sinks=True, zero_if_unseen=True)
    found = attended(arrays, [500], rule, (mask, sinks))
    assert_near(found, wanted(arrays, [500], 0.7, ahead=0, cap=1.5, mask=mask, sinks=sinks))


@pytest.mark.parametrize("queries", [1, 40])
def test_a_sink_far_below_or_above_all_scores_is_harmless(queries):
    arrays = operands(1, 1, 2, queries, 300, lengths=[300])
    rule = Rule(0.3, counted=True, sinks=True)
    sinks = np.array([[-500, 500]], np.float32)
    found = attended(arrays, [300], rule, (sinks,))
    assert_near(found[:, :, 0], wanted(arrays, [300], 0.3)[:, :, 0])
    assert (found[:, :, 1] == 0).all()


def test_positions_without_lengths_start_where_the_rule_says():
    arrays = operands(1, 2, 1, 9, 120, lengths=[120])
    strides = [list(array.strides) for array in (arrays[0][:, :, 0], *arrays[1:])]
    target = np.zeros((1, 2, 9, 16), np.float32)
    rule = Rule(0.3, ahead=0, behind=7, first=111)
    kernel = NativeKernel.attention(
        "node", [1, 2], (9, 120, 16, 16), rule, [*strides, list(target.strides)]
    )
    scratch = np.zeros(kernel.scratch_bytes(1) // 4, np.float32)
    run_kernel(kernel, arrays[0][:, :, 0].copy(), *arrays[1:], target, scratch)
    assert_near(target[:, :, None], wanted(arrays, [120], 0.3, ahead=0, behind=7))


@pytest.mark.parametrize("queries", [1, 40])
@pytest.mark.parametrize("bad", [0, -1, 301, 1 << 62])
def test_a_length_outside_the_cache_is_refused_before_anything_is_written(bad, queries):
    arrays = operands(2, 1, 1, queries, 300, lengths=[300])
    lengths = np.array([300, bad], np.int64)
    kernel, target = kernel_of(arrays, lengths, Rule(0.3, counted=True))
    scratch = np.zeros(kernel.scratch_bytes(1) // 4, np.float32)
    message = f"Node `node` attends to {bad} keys; there must be at least 1 and at most 300"
    with pytest.raises(KernelError, match=message):
        run_kernel(kernel, *arrays, lengths, target, scratch)
    assert (target == 7).all()


def test_no_key_in_use_gives_zeros_where_the_rule_says_so():
    arrays = operands(1, 1, 1, 3, 300, lengths=[0])
    found = attended(arrays, [0], Rule(0.3, ahead=0, counted=True, zero_if_unseen=True))
    assert (found == 0).all()
