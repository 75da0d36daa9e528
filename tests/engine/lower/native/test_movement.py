from typing import Any

import hypothesis.extra.numpy as hnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightship
from tests.engine.graphs import graph_of, implementations, run
from tests.engine.kernels.typed import typed
from tests.engine.native_tier import assert_as_numpy
from tests.zoo.net import Net
from tests.zoo.oracle import assert_near, expected
from tightship import _core

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)
DTYPES = st.sampled_from(
    [np.bool_, np.int8, np.float16, ml_dtypes.bfloat16, np.float32, np.int64, np.complex128]
)
THREADS = st.integers(1, 3)
ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="strides come with oneDNN's layouts")


def counted(shape: tuple[int, ...], dtype: Any = np.int64) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 119).astype(dtype).reshape(shape)


def ints(*elements: int) -> Any:
    return np.array(elements, np.int64)


@given(SHAPES, DTYPES, THREADS, st.randoms())
@settings(max_examples=60)
def test_a_transpose_of_any_element_size(shape, dtype, threads, random):
    order = list(range(len(shape)))
    random.shuffle(order)
    assert_as_numpy(typed("Transpose", counted(shape, dtype), perm=order), threads)


@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(130, 67), (1, 3, 4099), (70, 3, 9), (5, 64, 64), (2, 9, 8, 17)])
def test_a_transpose_in_tiles_of_any_element_size(shape, dtype):
    for order in ((0, *reversed(range(1, len(shape)))), tuple(reversed(range(len(shape))))):
        assert_as_numpy(typed("Transpose", counted(shape, dtype), perm=list(order)), 2)


@given(SHAPES, DTYPES, THREADS, st.data())
@settings(max_examples=60)
def test_a_slice_of_any_signs_and_beyond_the_ends(shape, dtype, threads, data):
    bound = st.lists(st.integers(-7, 7), min_size=len(shape), max_size=len(shape))
    starts, ends = data.draw(bound), data.draw(bound)
    signs = st.sampled_from([-3, -2, -1, 1, 2])
    steps = data.draw(st.lists(signs, min_size=len(shape), max_size=len(shape)))
    walks = [_walk(s, e, step, n) for s, e, step, n in zip(starts, ends, steps, shape, strict=True)]
    like = np.zeros([len(walk) for walk in walks], dtype)
    axes = ints(*(a - len(shape) for a in range(len(shape))))
    case = typed(
        "Slice", counted(shape, dtype), ints(*starts), ints(*ends), axes, ints(*steps), like=[like]
    )
    assert_as_numpy(case, threads)


def _walk(start: int, end: int, step: int, length: int) -> range:
    """Positions that a slice reads, its ends brought inside the dimension."""
    low, high = (0, length) if step > 0 else (-1, length - 1)
    start, end = (v + length if v < 0 else v for v in (start, end))
    return range(min(max(start, 0), high), min(max(end, low), high), step) if length else range(0)


@given(SHAPES, DTYPES, THREADS, st.data())
@settings(max_examples=60)
def test_what_is_split_and_what_is_joined(shape, dtype, threads, data):
    x = counted(shape, dtype)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    cuts = sorted(data.draw(st.lists(st.integers(0, shape[axis]), min_size=2, max_size=2)))
    parts = np.split(x, cuts, axis)
    lengths = ints(*(part.shape[axis] for part in parts))
    assert_as_numpy(typed("Split", x, lengths, axis=axis, outputs=3, like=parts), threads)
    assert_as_numpy(typed("Concat", *parts, axis=axis, like=[x]), threads)


@given(SHAPES, DTYPES, THREADS, st.data())
@settings(max_examples=60)
def test_what_is_repeated(shape, dtype, threads, data):
    x = counted(shape, dtype)
    repeats = data.draw(st.lists(st.integers(0, 3), min_size=len(shape), max_size=len(shape)))
    assert_as_numpy(typed("Tile", x, ints(*repeats), like=[np.tile(x, repeats)]), threads)
    wide = (2, *(data.draw(st.integers(0, 3)) if n == 1 else n for n in shape))
    case = typed("Expand", x, ints(*wide), like=[np.broadcast_to(x, wide)])
    assert_as_numpy(case, threads)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks_between_depth_and_space(mode: str):
    deep = counted((2, 18, 2, 5), np.float32)
    assert_as_numpy(typed("DepthToSpace", deep, blocksize=3, mode=mode))
    wide = counted((2, 3, 4, 6), np.int8)
    assert_as_numpy(typed("SpaceToDepth", wide, blocksize=2, like=[np.zeros((2, 12, 2, 3), "i1")]))


def test_a_scalar_is_repeated_and_one_part_is_joined():
    assert_as_numpy(typed("Expand", np.float32(3).reshape(()), ints(2, 3)))
    assert_as_numpy(typed("Concat", counted((3, 2)), axis=0))


STRIDED = {
    "Slice": "y = Slice (t, start, end, axes, step)",
    "Split": "y, z = Split <axis = 1, num_outputs = 2> (t)",
    "Tile": "y = Tile (t, repeats)",
    "DepthToSpace": "y = DepthToSpace <blocksize = 2> (t)",
    "SpaceToDepth": "y = SpaceToDepth <blocksize = 2> (t)",
}


@ONEDNN
@pytest.mark.parametrize("operator", STRIDED)
def test_a_transposed_input_is_read_as_it_lies(operator: str):
    graph = graph_of(
        f"g (float[4, 6, 8, 2] x) => (float[a, b, c, d] y) "
        f"{{ t = Transpose <perm = [3, 2, 1, 0]> (x) {STRIDED[operator]} }}",
        start=ints(5, 1), end=ints(-9, 4), axes=ints(2, 3), step=ints(-2, 2),
        repeats=ints(1, 2, 1, 2),
    )  # fmt: skip
    assert "Reorder" not in {operator for operator, _, _ in implementations(graph)}
    x = counted((4, 6, 8, 2), np.float32)
    found, wanted = run(graph, inputs={"x": x}), run(graph, ("native", "onednn"), {"x": x})
    np.testing.assert_array_equal(found["y"], wanted["y"])


VIEWS = {
    "a slice of everything": "Slice (x, zero, far)",
    "a tile once": "Tile (x, once)",
    "an expansion to the same shape": "Expand (x, same)",
    "a transpose of axes of length one": "Transpose <perm = [1, 0, 2]> (x)",
}


@pytest.mark.parametrize("text", VIEWS.values(), ids=VIEWS)
def test_nothing_moves_in(text: str):
    graph = graph_of(
        f"g (int32[1, 3, 4] x) => (int32[1, 3, 4] z) {{ a = Neg (x) y = {text} z = Neg (y) }}"
        if "Transpose" not in text
        else f"g (int32[1, 3, 4] x) => (int32[3, 1, 4] z) {{ a = Neg (x) y = {text} z = Neg (y) }}",
        zero=ints(0, 0), far=ints(9, 9), once=ints(1, 1, 1), same=ints(1, 3, 4),
    )  # fmt: skip
    assert {operator for operator, _, _ in implementations(graph)} == {"Neg"}


@pytest.mark.parametrize(
    ("operator", "operands", "attributes"),
    [("Slice", ([0, 1], [3, 5], [1, 2]), {}), ("Pad", ([0, 1, 2, 0, 0, 0, 1, 3],), {}),
     ("Pad", ([0, 0, 2, 1, 0, 0, 0, 0],), {"mode": "reflect"})],
)  # fmt: skip
def test_what_is_made_of_an_image_lies_as_it_does(operator, operands, attributes):
    net = Net()
    x = net("Conv", net.normal("x", 2, 5, 6, 7), net.weight(18, 5, 3, 3), pads=[1, 1, 1, 1])
    y = net(operator, x, *(net.ints(*each) for each in operands), **attributes)
    channels = {"Slice": 3, "Pad": 19 if not attributes else 18}[operator]
    net.output(net("Conv", y, net.weight(8, channels, 1, 1)))
    case = net.case()
    with tightship.load(case.model) as model:
        operators = [step.operator for step in model.plan.steps]
        assert "Reorder" not in operators[operators.index("Conv") : -2]
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
