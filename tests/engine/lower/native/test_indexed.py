from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.graphs import graph_of, implementations, lowered, run
from tests.engine.kernels.typed import Typed, typed
from tests.engine.native_tier import assert_as_numpy, lowered_natively, run_natively
from tightship import _core
from tightship.errors import InputError

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=5)
INDEX_TYPES = st.sampled_from([np.int32, np.int64])
ITEMS = st.sampled_from([np.bool_, np.float16, np.float32, np.int64, np.complex128])
NUMBERS = [np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
           np.uint32, np.uint64]  # fmt: skip
THREADS = st.integers(1, 3)
ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="strides come with oneDNN's layouts")


def counted(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 119).astype(dtype).reshape(shape)


@given(SHAPES, ITEMS, INDEX_TYPES, THREADS, st.data())
@settings(max_examples=60)
def test_rows_of_any_axis_are_gathered(shape, dtype, index_type, threads, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    bound = {"min_value": -shape[axis], "max_value": shape[axis] - 1}
    picks = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    index = data.draw(hnp.arrays(index_type, picks, elements=bound))
    assert_as_numpy(typed("Gather", counted(shape, dtype), index, axis=axis), threads)


@given(SHAPES, ITEMS, INDEX_TYPES, THREADS, st.data())
@settings(max_examples=60)
def test_elements_are_gathered_and_scattered_along_an_axis(shape, dtype, index_type, threads, data):
    x, axis = counted(shape, dtype), data.draw(st.integers(-len(shape), len(shape) - 1))
    lengths = [data.draw(st.integers(0, n)) for n in shape]
    order = np.argsort(np.random.default_rng(1).random(shape), axis=axis).astype(index_type)
    index = order[tuple(slice(n) for n in lengths)].copy()
    index[::2] -= shape[axis]
    assert_as_numpy(typed("GatherElements", x, index, axis=axis), threads)
    updates = counted(index.shape, dtype)[..., ::-1].copy()
    assert_as_numpy(typed("ScatterElements", x, index, updates, axis=axis), threads)


@given(ITEMS, THREADS, st.integers(0, 2), st.integers(0, 1), st.integers(0, 3))
@settings(max_examples=60)
def test_rows_are_gathered_by_tuples(dtype, threads, batch, depth, count):
    x = counted((2, 3, 4, 5), dtype)
    shape = (*x.shape[:batch], count, depth + 1)
    index = np.random.default_rng(depth).integers(-2, 2, shape)
    assert_as_numpy(typed("GatherND", x, index, version=13, batch_dims=batch), threads)


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_updates_are_combined_where_they_meet(reduction: str, dtype: Any):
    x, updates = counted((3, 4, 5), dtype), (counted((2, 2, 5)) * 7 - 9).astype(dtype)
    index = np.array([[[0, 1], [-1, 2]], [[0, 1] if reduction != "none" else [1, 1], [1, -1]]])
    case = typed("ScatterND", x, index, updates, version=18, reduction=reduction)
    assert_as_numpy(case, 2)
    places = np.random.default_rng(3).integers(-4, 4, (3, 6, 5))
    if reduction == "none":
        places = np.argsort(np.random.default_rng(3).random((3, 4, 5)), axis=1)
    updates = (counted(places.shape) * 5 - 90).astype(dtype)
    case = typed("ScatterElements", x, places, updates, axis=1, reduction=reduction, version=18)
    assert_as_numpy(case, 2)


def test_what_is_no_number_is_greatest():
    nan = np.float32("nan")
    x, updates = np.array([nan, 1, 2], np.float32), np.array([0, nan, 1], np.float32)
    for reduction in ("max", "min"):
        case = typed("ScatterElements", x, np.arange(3), updates, reduction=reduction, version=18)
        assert_as_numpy(case)


def test_half_floats_are_combined_by_another_tier():
    x = np.zeros(3, np.float16)
    case = typed("ScatterElements", x, np.arange(3), x, reduction="add", version=18)
    assert lowered_natively(case.node, case.inputs, case.like) is None


OUTSIDE = {
    "Gather": ((3, 2), [[1], [3]], {}),
    "Gather below": ((3, 2), [[-4], [0]], {}),
    "Gather along the last axis": ((3, 2), [2], {"axis": -1}),
    "Gather from nothing": ((0, 2), [0], {}),
    "GatherElements": ((3, 2), [[0, 9], [-7, 1]], {}),
    "GatherND": ((3, 2), [[0, 1], [2, 2]], {}),
    "GatherND twice": ((3, 2), [[5, 1], [2, 2]], {}),
    "ScatterElements": ((3, 2), [[0, 3]], {}),
    "ScatterND": ((3, 2), [[0, -3]], {}),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_an_index_outside_is_refused_as_numpy_kernels_do(name: str, index_type: Any):
    shape, index, attributes = OUTSIDE[name]
    operator = name.split(maxsplit=1)[0]
    index_type = np.int64 if operator.endswith("ND") else index_type
    x, at = counted(shape), np.array(index, index_type)
    updates = [] if operator.startswith("Gather") else [counted(at.shape)]
    if operator == "ScatterND":
        updates = [counted(at.shape[:-1])]
    case = typed(operator, x, at, *updates, **attributes)
    assert _refusal(case) == _numpy_refusal(case)


def _refusal(case: Typed) -> str:
    with pytest.raises(InputError) as refused:
        run_natively(case.node, case.inputs, case.like)
    return str(refused.value)


def _numpy_refusal(case: Typed) -> str:
    with pytest.raises(InputError) as refused:
        case.run()
    return str(refused.value)


CACHE = """g (float[2, 8, 4] x, int64[3, 1, 2] i, float[3, 1, 4] u, int64[3, 1, 2] j)
    => (float[2, 8, 4] y) {{ a = Sqrt (x) b = ScatterND (a, i, u) {between}
    c = ScatterND (b, j, u) y = Sqrt ({last}) }}"""


@pytest.mark.parametrize("kept", [False, True])
def test_a_dying_cache_is_written_in_place_and_a_living_one_is_not(kept: bool):
    between, last = ("", "c")
    if kept:
        last = "d"
    text = CACHE.format(between=between, last=last)
    if kept:
        text = text.replace("y = Sqrt (d)", "d = Add (b, c) y = Sqrt (d)")
    graph = graph_of(text)
    steps = [step for step in lowered(graph).steps if step.implementation == "scatter"]
    assert [len(step.sharing) for step in steps] == [1, 1]
    index = np.array([[[0, 1]], [[1, 7]], [[0, 3]]])
    feeds = {
        "x": counted((2, 8, 4)), "i": index, "u": counted((3, 1, 4)) + 1, "j": index[::-1] - 1
    }  # fmt: skip
    found, wanted = run(graph, inputs=feeds), run(graph, ("native", "onednn", "in_place"), feeds)
    np.testing.assert_array_equal(found["y"], wanted["y"])


@ONEDNN
def test_rows_of_a_transposed_value_are_read_as_they_lie():
    graph = graph_of(
        "g (float[4, 5, 6] x, int64[3] i) => (float[6, 3, 4] y) "
        "{ t = Transpose <perm = [2, 1, 0]> (x) y = Gather <axis = 1> (t, i) }"
    )
    assert {operator for operator, _, _ in implementations(graph)} == {"Gather"}
    feeds = {"x": counted((4, 5, 6)), "i": np.array([4, -2, 0])}
    np.testing.assert_array_equal(
        run(graph, inputs=feeds)["y"], feeds["x"].transpose(2, 1, 0)[:, feeds["i"]]
    )


@ONEDNN
def test_what_lies_otherwise_is_copied_before_it_is_scattered_into():
    graph = graph_of(
        "g (float[4, 5] x, int64[2, 2] i, float[2] u) => (float[5, 4] y) "
        "{ a = Sqrt (x) t = Transpose (a) b = ScatterND (t, i, u) y = Sqrt (b) }"
    )
    feeds = {"x": counted((4, 5)), "i": np.array([[0, 3], [4, -4]]), "u": counted((2,)) + 1}
    found, wanted = run(graph, inputs=feeds), run(graph, ("native", "onednn"), feeds)
    np.testing.assert_allclose(found["y"], wanted["y"], rtol=1e-6)


def test_a_value_that_is_its_own_update_is_not_written_in_place():
    graph = graph_of(
        "g (int32[4] x, int64[4] i) => (int32[4] y) "
        "{ a = Neg (x) b = ScatterElements (a, i, a) y = Neg (b) }"
    )
    feeds = {"x": counted((4,), np.int32), "i": np.array([1, 2, 3, 0])}
    assert run(graph, inputs=feeds)["y"].tolist() == [3, 0, 1, 2]
