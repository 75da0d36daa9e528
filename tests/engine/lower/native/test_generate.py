from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import graph_of, run
from tests.engine.kernels.typed import typed
from tests.engine.native_tier import assert_as_numpy
from tightship import _core

ITEMS = st.sampled_from([np.bool_, np.uint8, np.float16, np.float32, np.int64])
THREADS = st.integers(1, 3)
ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="strides come with oneDNN's layouts")


def counted(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return (1 + np.arange(np.prod(shape, dtype=int)) % 119).astype(dtype).reshape(shape)


@given(
    hnp.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5), ITEMS,
    st.sampled_from([None, 0, 1, -1, 3, -3, 2**62, -(2**62)]), st.booleans(), THREADS,
)  # fmt: skip
@settings(max_examples=60)
def test_a_triangle_is_kept(shape, dtype, diagonal, upper, threads):
    inputs = [counted(shape, dtype)] + ([] if diagonal is None else [np.array(diagonal)])
    case = typed("Trilu", *inputs, upper=int(upper), like=[inputs[0]])
    assert_as_numpy(case, threads)


@ONEDNN
@pytest.mark.parametrize("text", ["s = Sqrt (x) t = Transpose (s)", "t = Sqrt (x)"])
def test_a_triangle_of_what_lies_otherwise_or_dies(text: str):
    graph = graph_of(
        f"g (float[5, 5] x) => (float[5, 5] y) {{ {text} b = Trilu <upper = 0> (t) y = Neg (b) }}"
    )
    x = counted((5, 5)) ** 2
    t = np.sqrt(x).T if "Transpose" in text else np.sqrt(x)
    np.testing.assert_allclose(run(graph, inputs={"x": x})["y"], -np.tril(t), rtol=1e-6)


@given(
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    st.sampled_from([np.int32, np.int64, np.float32, np.uint8, np.int8]),
    ITEMS, st.integers(0, 5), THREADS, st.data(),
)  # fmt: skip
@settings(max_examples=60)
def test_ones_are_put_where_indices_say(shape, dtype, item, depth, threads, data):
    low = 0 if np.dtype(dtype).kind == "u" else -8
    index = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(low, 8))).astype(dtype)
    axis = data.draw(st.integers(-len(shape) - 1, len(shape)))
    place = axis % (len(shape) + 1)
    like = np.zeros((*shape[:place], depth, *shape[place:]), item)
    values = np.array([0, 1], item)
    case = typed("OneHot", index, np.array(depth), values, axis=axis, like=[like])
    assert_as_numpy(case, threads)


@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 7, 32_000])
def test_numbers_grow_by_a_step(dtype: Any, count: int):
    inputs = [np.array(x, dtype) for x in (3, 0, -2)]
    assert_as_numpy(typed("Range", *inputs, like=[np.zeros(count, dtype)]), 3)


@given(st.integers(0, 5), st.integers(0, 5), st.integers(-6, 6), ITEMS)
@settings(max_examples=60)
def test_ones_on_a_diagonal(rows, columns, shift, dtype):
    x = np.zeros((rows, columns), dtype)
    assert_as_numpy(typed("EyeLike", x, k=shift, like=[x]))


@given(hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40), ITEMS, THREADS)
@settings(max_examples=60)
def test_one_element_everywhere(shape, dtype, threads):
    like = np.zeros(shape, dtype)
    case = typed("ConstantOfShape", np.array(shape, np.int64), value=np.ones(1, dtype), like=[like])
    assert_as_numpy(case, threads)
