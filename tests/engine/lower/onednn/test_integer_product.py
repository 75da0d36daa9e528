"""Sums of integers, and the same scaled to real numbers, against NumPy and the reference."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import expected, graph_of, implementations, run
from tests.processor import HAS_VNNI
from tightship import _core

TIER = "onednn" if HAS_VNNI else "numpy"
"""Tier whose sums of products of bytes are exact."""

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


def integers(seed, dtype, *shape):
    limits = np.iinfo(dtype)
    drawn = np.random.default_rng(seed).integers(limits.min, limits.max + 1, shape)
    return drawn.astype(dtype)


def product_graph(left, right, zeros, constants):
    """MatMulInteger of arrays, of which those named in `constants` are initializers."""
    arrays = {"a": left, "b": right, **zeros}
    shape = [*left.shape[:-1], right.shape[-1]]
    declared = ", ".join(
        f"{array.dtype.name}[{','.join(map(str, array.shape))}] {name}"
        for name, array in arrays.items() if name not in constants
    )  # fmt: skip
    names = ", ".join(arrays)
    text = f"g ({declared}) => (int32[{','.join(map(str, shape))}] y) {{\
        y = MatMulInteger ({names}) }}"
    inputs = {name: array for name, array in arrays.items() if name not in constants}
    return graph_of(text, **{name: arrays[name] for name in constants}), inputs


@settings(max_examples=60)
@given(
    types=st.tuples(*[st.sampled_from([np.uint8, np.int8])] * 2),
    outer=st.sampled_from([(), (2,), (2, 3)]),
    stacked=st.booleans(),
    sizes=st.tuples(*[st.integers(1, 70)] * 3),
    zeros=st.sampled_from([(), ("za",), ("za", "zb")]),
    constants=st.sampled_from([(), ("b",), ("b", "zb"), ("a",)]),
)
def test_sums_are_exact(types, outer, stacked, sizes, zeros, constants):
    rows, depth, columns = sizes
    left = integers(1, types[0], *outer, rows, depth)
    right = integers(2, types[1], *(outer if stacked else ()), depth, columns)
    points = {"za": np.array([100], types[0]), "zb": np.array([7], types[1])}
    given_zeros = {name: points[name] for name in zeros}
    graph, inputs = product_graph(left, right, given_zeros, set(constants) & {"a", "b", *zeros})
    kernels = {(operator, kernel) for operator, kernel, _ in implementations(graph)}
    assert ("MatMulInteger", TIER) in kernels
    za, zb = (int(points[name][0]) if name in zeros else 0 for name in ("za", "zb"))
    wanted = (left.astype(np.int64) - za) @ (right.astype(np.int64) - zb)
    np.testing.assert_array_equal(run(graph, inputs=inputs)["y"], wanted)


def test_a_zero_point_for_each_row_is_left_to_another_kernel():
    left, right = integers(1, np.uint8, 3, 5), integers(2, np.int8, 5, 4)
    graph, inputs = product_graph(left, right, {"za": np.uint8([1, 2, 3])}, ())
    assert "onednn" not in {kernel for _, kernel, _ in implementations(graph)}
    wanted = (left.astype(np.int64) - [[1], [2], [3]]) @ right
    np.testing.assert_array_equal(run(graph, inputs=inputs)["y"], wanted)


def test_products_of_what_is_quantized_in_the_run_are_those_of_both():
    graph = graph_of(
        """g (float[2, 9, 33] x, float[2, 33, 17] w) => (float[2, 9, 17] y) {
            xq, sx, zx = DynamicQuantizeLinear (x) wq, sw, zw = DynamicQuantizeLinear (w)
            s = MatMulInteger (xq, wq, zx, zw) r = Cast <to = 1> (s)
            k = Mul (sx, sw) y = Mul (r, k) }"""
    )
    assert ("MatMulInteger", TIER) in {(o, k) for o, k, _ in implementations(graph)}
    np.testing.assert_allclose(run(graph)["y"], expected(graph)["y"], rtol=1e-5, atol=1e-5)
