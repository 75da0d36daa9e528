from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tightship
from tests.engine.kernels.typed import typed
from tests.zoo.net import Net
from tightship.errors import InputError

SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, max_side=4)


def counted(shape: tuple[int, ...]) -> Any:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@given(SHAPES, st.sampled_from([np.int32, np.int64]), st.data())
def test_negative_indices_count_from_the_end(shape, dtype, data):
    x = counted(shape)
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    bound = {"min_value": -x.shape[axis], "max_value": x.shape[axis] - 1}
    picks = hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3)
    index = data.draw(hnp.arrays(dtype, picks, elements=bound))
    (result,) = typed("Gather", x, index, axis=axis).run()
    np.testing.assert_array_equal(result, np.take(x, index, axis=axis))


@given(SHAPES, st.data())
def test_elements_are_gathered_and_scattered_along_an_axis(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(0, x.ndim - 1))
    lengths = [data.draw(st.integers(1, n)) for n in shape]
    order = np.argsort(np.random.default_rng(1).random(shape), axis=axis)
    index = order[tuple(slice(n) for n in lengths)].copy()
    index[::2] -= shape[axis]
    part = tuple(slice(n) for a, n in enumerate(lengths))
    rows = tuple(slice(None) if a == axis else s for a, s in enumerate(part))
    (result,) = typed("GatherElements", x, index, axis=axis).run()
    np.testing.assert_array_equal(result, np.take_along_axis(x[rows], index % shape[axis], axis))
    updates = -1 - counted(index.shape)
    expected = x.copy()
    np.put_along_axis(expected[rows], index % shape[axis], updates, axis)
    (result,) = typed("ScatterElements", x, index, updates, axis=axis).run()
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize("depth", [1, 2])
def test_tuples_of_coordinates_gather_rows(batch: int, depth: int):
    x = counted((2, 3, 4, 5))
    index = np.random.default_rng(2).integers(-2, 2, (2, 6, depth))
    case = typed("GatherND", x, index, version=13, batch_dims=batch)
    rows = [x[b][tuple(t)] if batch else x[tuple(t)] for b in range(2) for t in index[b]]
    np.testing.assert_array_equal(case.run()[0], np.reshape(rows, case.like[0].shape))


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "max", "min"])
def test_tuples_of_coordinates_scatter_rows(reduction: str):
    x, index = counted((3, 4, 5)), np.array([[[0, 1]], [[-1, 2]]], np.int64)
    updates = counted((2, 1, 5)) - 4
    case = typed("ScatterND", x, index, updates, version=18, reduction=reduction)
    np.testing.assert_array_equal(case.run()[0], case.reference()[0])


def test_reductions_meet_at_one_place():
    x, index = np.zeros(3, np.float32), np.array([1, 1, -2], np.int64)
    case = typed("ScatterElements", x, index, np.ones(3, np.float32), reduction="add")
    assert case.run()[0].tolist() == [0, 3, 0]


@pytest.mark.parametrize("operator", ["Gather", "GatherElements", "GatherND"])
@pytest.mark.parametrize("index", [3, -4])
def test_an_index_outside_is_refused(operator: str, index: int):
    case = typed(operator, counted((3,)), np.array([index], np.int64))
    with pytest.raises(InputError, match=r"they must be in \[-3, 2\]"):
        case.run()


def test_an_empty_dimension_may_be_indexed_by_nothing():
    (result,) = typed("Gather", np.zeros((0, 2), np.float32), np.zeros((0,), np.int64)).run()
    assert result.shape == (0, 2)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("reduction", ["none", "add"])
def test_threads_put_updates_of_one_place_in_their_order(reduction: str, threads: int) -> None:
    """Each takes a part of every row; sums of floats depend on the order."""
    net = Net(7, opset=18)
    data, updates = net.normal("x", 20, 4097), net.normal("u", 60, 4097)
    places = net.random.integers(-20, 20, (60, 1))
    index = net.input("i", places)
    net.output(net("ScatterND", data, index, updates, reduction=reduction))
    case = net.case()
    wanted = case.feeds["x"].copy()
    for (place,), update in zip(places, case.feeds["u"], strict=True):
        wanted[place] = update + (wanted[place] if reduction == "add" else 0)
    with tightship.load(case.model, threads=threads) as model:
        (found,) = model.run(case.feeds).values()
    np.testing.assert_array_equal(found, wanted)
