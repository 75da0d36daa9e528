from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import typed

SMALL = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


def counted(shape: tuple[int, ...], dtype: Any = np.int64) -> Any:
    return np.arange(np.prod(shape, dtype=int), dtype=dtype).reshape(shape)


def ints(*elements: int) -> Any:
    return np.array(elements, np.int64)


@given(SMALL, st.data())
def test_a_slice_is_numpys_slice_with_any_signs_and_beyond_the_ends(shape, data):
    x = counted(shape)
    bound = st.integers(-6, 6)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    start, end = data.draw(bound), data.draw(bound)
    step = data.draw(st.sampled_from([-3, -2, -1, 1, 2, 3]))
    if step < 0:
        end = data.draw(st.sampled_from([end, -(2**62)]))
    length = shape[axis]
    first, last = (v + length if v < 0 else v for v in (start, end))
    chosen = _reads(first, last, step, length)
    expected = np.take(x, np.array(chosen, np.int64), axis=axis)
    case = typed("Slice", x, ints(start), ints(end), ints(axis), ints(step), like=[expected])
    np.testing.assert_array_equal(case.run()[0], expected)


def _reads(start: int, end: int, step: int, length: int) -> list[int]:
    """Elements that a walk from start by step meets before end, inside the dimension."""
    low, high = (0, length) if step > 0 else (-1, length - 1)
    position = min(max(start, 0), length if step > 0 else length - 1)
    stop = min(max(end, low), high)
    result = []
    while (position < stop) if step > 0 else (position > stop):
        result.append(position)
        position += step
    return result


def test_before_opset_10_a_slice_has_attributes():
    x = counted((4, 5))
    case = typed("Slice", x, version=9, starts=[1, -3], ends=[100, -1], axes=[0, 1])
    np.testing.assert_array_equal(case.run()[0], x[1:, -3:-1])


@given(SMALL, st.randoms())
def test_a_transpose_moves_every_element(shape, random):
    x = counted(shape)
    order = list(range(len(shape)))
    random.shuffle(order)
    np.testing.assert_array_equal(typed("Transpose", x, perm=order).run()[0], x.transpose(order))


@given(SMALL, st.data())
def test_splitting_and_concatenating_gives_the_tensor_back(shape, data):
    x = counted(shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cut = data.draw(st.integers(0, shape[axis]))
    halves = np.split(x, [cut], axis)
    lengths = ints(cut, shape[axis] - cut)
    parts = typed("Split", x, lengths, axis=axis, outputs=2, like=halves).run()
    for part, half in zip(parts, halves, strict=True):
        np.testing.assert_array_equal(part, half)
    np.testing.assert_array_equal(typed("Concat", *parts, axis=axis, like=[x]).run()[0], x)


@given(SMALL, st.data())
def test_a_tile_repeats_along_every_axis(shape, data):
    x = counted(shape)
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape)))
    expected = np.tile(x, repeats)
    case = typed("Tile", x, ints(*repeats), like=[expected])
    np.testing.assert_array_equal(case.run()[0], expected)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space_undoes_space_to_depth(mode: str):
    x = counted((2, 3, 4, 6), np.float32)
    (deep,) = typed(
        "SpaceToDepth", x, blocksize=2, like=[np.zeros((2, 12, 2, 3), np.float32)]
    ).run()
    (back,) = typed("DepthToSpace", deep, blocksize=2, mode="DCR").run()
    np.testing.assert_array_equal(back, x)
    case = typed("DepthToSpace", deep, blocksize=2, mode=mode)
    np.testing.assert_array_equal(case.run()[0], case.reference()[0])


def test_a_dropout_that_does_not_train_copies_and_keeps_all():
    x = counted((3, 4), np.float32)
    result, mask = typed("Dropout", x, outputs=2).run()
    np.testing.assert_array_equal(result, x)
    assert mask.dtype == np.bool_
    assert mask.all()


def test_a_dropout_that_trains_has_no_kernel():
    x, ratio = counted((3,), np.float32), np.float32(0.5).reshape(())
    assert not typed("Dropout", x, ratio, np.array(True)).is_covered
    assert not typed("Dropout", x, version=6, like=[x]).is_covered


@given(st.sampled_from([((2, 1, 3), (2, 4, 3)), ((), (2, 3)), ((1,), (0,)), ((3,), (2, 3))]))
def test_an_expansion_broadcasts(shapes):
    x = counted(shapes[0])
    case = typed("Expand", x, ints(*shapes[1]), like=[np.zeros(shapes[1], np.int64)])
    np.testing.assert_array_equal(case.run()[0], np.broadcast_to(x, shapes[1]))
