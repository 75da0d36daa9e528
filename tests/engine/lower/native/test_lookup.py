from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.engine.graphs import assert_close, expected, graph_of, implementations, run
from tests.engine.kernels.typed import typed
from tests.engine.native_tier import assert_as_numpy, run_natively
from tests.models import filled
from tightship import _core

SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, max_side=5)
ITEMS = st.sampled_from([np.bool_, np.uint8, np.float16, np.float32, np.int64, np.complex128])
THREADS = st.integers(1, 3)


def counted(shape: tuple[int, ...], dtype: Any = np.float32) -> Any:
    return (np.arange(np.prod(shape, dtype=int)) % 119).astype(dtype).reshape(shape)


@given(SHAPES, ITEMS, st.sampled_from(["constant", "edge", "reflect", "wrap"]), THREADS, st.data())
@settings(max_examples=60)
def test_a_pad_mirrors_repeats_fills_and_takes_away(shape, dtype, mode, threads, data):
    amounts = st.lists(st.integers(-2, 7), min_size=len(shape), max_size=len(shape))
    before, after = data.draw(amounts), data.draw(amounts)
    like = [n + b + a for n, b, a in zip(shape, before, after, strict=True)]
    assume(min(like) >= 0)
    assume(
        all(n + min(b, 0) + min(a, 0) >= 0 for n, b, a in zip(shape, before, after, strict=True))
    )
    fill = [np.ones((), dtype)] if data.draw(st.booleans()) and mode == "constant" else []
    pads = np.array(before + after, np.int64)
    case = typed("Pad", counted(shape, dtype), pads, *fill, mode=mode, like=[np.zeros(like, dtype)])
    assert_as_numpy(case, threads)


def test_a_pad_whose_filling_is_an_attribute():
    x = counted((2, 3))
    like = [np.zeros((4, 5), np.float32)]
    for value in (0.0, 2.5):
        case = typed("Pad", x, version=10, pads=[1, 1, 1, 1], value=value, like=like)
        assert_as_numpy(case)


@given(SHAPES, ITEMS, THREADS, st.data())
@settings(max_examples=60)
def test_the_nearest_element_is_taken_whatever_the_type(shape, dtype, threads, data):
    sizes = [data.draw(st.integers(1, 9)) for _ in shape]
    mode = data.draw(st.sampled_from(["asymmetric", "half_pixel", "align_corners"]))
    rounding = data.draw(st.sampled_from(["floor", "ceil", "round_prefer_floor"]))
    case = typed(
        "Resize", counted(shape, dtype), None, None, np.array(sizes), mode="nearest",
        coordinate_transformation_mode=mode, nearest_mode=rounding,
        like=[np.zeros(sizes, dtype)], version=19,
    )  # fmt: skip
    assert_as_numpy(case, threads)


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float32, np.int64])
@pytest.mark.parametrize("scale", [2, 3])
def test_each_element_of_an_image_becomes_a_square(dtype: Any, scale: int):
    x = counted((3, 61, 67), dtype)
    sizes = np.array([3, 61 * scale, 67 * scale])
    like = np.zeros(sizes, dtype)
    case = typed("Resize", x, None, None, sizes, mode="nearest", version=19, like=[like])
    assert_as_numpy(case, 3)


def test_rows_that_lie_together_are_copied_at_once():
    for pads in ([1, 0, 0, 0, 2, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 1, 0]):
        x = counted((2, 3, 4, 50))
        like = [
            np.zeros([n + b + a for n, b, a in zip(x.shape, pads[:4], pads[4:], strict=True)], "f4")
        ]
        for mode in ("constant", "edge"):
            assert_as_numpy(typed("Pad", x, np.array(pads), mode=mode, like=like), 2)


@given(SHAPES, ITEMS, st.data())
@settings(max_examples=60)
def test_a_crop_or_a_pad_leaves_the_middle_in_the_middle(shape, dtype, data):
    sizes = [data.draw(st.integers(0, 9)) for _ in shape]
    case = typed("CenterCropPad", counted(shape, dtype), np.array(sizes), version=18,
                 like=[np.zeros(sizes, dtype)])  # fmt: skip
    results = run_natively(case.node, case.inputs, case.like)
    assert results is not None
    if 0 not in sizes:
        np.testing.assert_array_equal(results[0], case.reference()[0])


@pytest.mark.parametrize(
    "text", ["Pad (x, zeros)", "CenterCropPad (x, same)", 'Resize <mode = "nearest"> (x, , ones)']
)
def test_nothing_moves_where_nothing_is_added(text: str):
    graph = graph_of(
        f"g (int32[2, 3] x) => (int32[2, 3] y) {{ a = Neg (x) b = {text.replace('x', 'a', 1)} "
        "y = Neg (b) }",
        zeros=np.zeros(4, np.int64), same=np.array([2, 3]), ones=np.ones(2, np.float32),
    )  # fmt: skip
    assert {operator for operator, _, _ in implementations(graph)} == {"Neg"}


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="strides come with oneDNN's layouts")
@pytest.mark.parametrize("mode", ["constant", "reflect"])
def test_a_transposed_input_is_read_as_it_lies(mode: str):
    graph = graph_of(
        "g (float[4, 3, 5] x) => (float[5, 5, 4] y) { t = Transpose <perm = [2, 1, 0]> (x) "
        f'y = Pad <mode = "{mode}"> (t, pads) }}',
        pads=np.array([0, 1, 0, 0, 1, 0]),
    )
    assert {operator for operator, _, _ in implementations(graph)} == {"Pad"}
    x = counted((4, 3, 5))
    expected = np.pad(x.transpose(2, 1, 0), ((0, 0), (1, 1), (0, 0)), mode)
    np.testing.assert_array_equal(run(graph, inputs={"x": x})["y"], expected)


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="layouts are oneDNN's")
@pytest.mark.parametrize("channels", [16, 48])
def test_a_padded_image_in_blocks_has_channels_last(channels):
    graph = graph_of(
        f"""g (float[1, 3, 24, 24] x) => (float[1, {channels}, 12, 12] y) {{
            c = Conv <pads = [1, 1, 1, 1]> (x, w) p = Pad (c, around)
            m = MaxPool <kernel_shape = [3, 3], strides = [2, 2]> (p)
            d = Conv <strides = [2, 2]> (p, v)
            y = Add (m, d)
        }}""",
        w=filled(channels, 3, 3, 3), v=filled(channels, channels, 3, 3) / 64,
        around=np.array([0, 0, 0, 0, 0, 0, 1, 1]),
    )  # fmt: skip
    names = [operator for operator, _, _ in implementations(graph)]
    assert names.index("Pad") < 3
    assert names[names.index("Pad") :].count("Reorder") == 1  # the output, row-major
    assert_close(run(graph), expected(graph))
