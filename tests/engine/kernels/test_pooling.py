import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import tightship
from tests.engine.kernels.typed import typed
from tightship.errors import GraphError


@st.composite
def pools(draw: Any) -> tuple[Any, dict[str, Any]]:
    rank = draw(st.integers(1, 2))

    def each(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    kernel = each(1, 3)
    begins = [draw(st.integers(0, k - 1)) for k in kernel]
    ends = [draw(st.integers(0, k - 1)) for k in kernel]
    random = np.random.default_rng(draw(st.integers(0, 99)))
    x = random.standard_normal((2, 2, *each(5, 9))).astype(np.float32)
    attributes = {
        "kernel_shape": kernel,
        "strides": each(1, 3),
        "dilations": each(1, 2),
        "pads": [*begins, *ends],
        "ceil_mode": draw(st.integers(0, 1)),
    }
    return x, attributes


def windows(x: Any, positions: tuple[int, ...], attributes: dict[str, Any]) -> Any:
    """Return each position's window of elements: NaN for padding, infinity past it."""
    rank = len(positions)
    pads = attributes["pads"]
    grown = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x.astype(np.float64), grown, constant_values=np.nan)
    padded = np.pad(padded, [(0, 0), (0, 0)] + [(0, 20)] * rank, constant_values=np.inf)
    for place in itertools.product(*(range(length) for length in positions)):
        taps = tuple(
            slice(p * stride, p * stride + (k - 1) * dilation + 1, dilation)
            for p, stride, dilation, k in zip(
                place,
                attributes["strides"],
                attributes["dilations"],
                attributes["kernel_shape"],
                strict=True,
            )
        )
        yield (..., *place), padded[(..., *taps)].reshape(*x.shape[:2], -1)


@settings(max_examples=60)
@given(pools())
def test_the_largest_of_each_window_is_taken(given_: Any):
    x, attributes = given_
    (result,) = typed("MaxPool", x, **attributes).run()
    for place, reads in windows(x, result.shape[2:], attributes):
        inside = np.where(np.isfinite(reads), reads, -np.inf)
        np.testing.assert_array_equal(result[place], inside.max(-1))


@settings(max_examples=60)
@given(pools(), st.booleans())
def test_the_mean_of_each_window_counts_padding_if_asked_to(given_: Any, include: bool):
    x, attributes = given_
    (result,) = typed("AveragePool", x, count_include_pad=int(include), **attributes).run()
    for place, reads in windows(x, result.shape[2:], attributes):
        inside = np.isfinite(reads)
        count = (inside | (include & np.isnan(reads))).sum(-1)
        total = np.where(inside, reads, 0).sum(-1)
        filled = inside.any(-1)
        np.testing.assert_allclose(
            result[place][filled], (total / np.maximum(count, 1))[filled], rtol=1e-4, atol=1e-5
        )


@pytest.mark.parametrize("operator", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(
    ("mode", "pads"),
    [("SAME_UPPER", [0, 1, 1, 1]), ("SAME_LOWER", [1, 1, 0, 1]), ("VALID", [0, 0, 0, 0])],
)
def test_automatic_padding_puts_the_odd_one_where_it_says(
    operator: str, mode: str, pads: list[int]
):
    x = np.arange(2 * 7 * 5, dtype=np.float32).reshape(1, 2, 7, 5)
    window = {"kernel_shape": [2, 3], "strides": [1, 2]}
    (result,) = typed(operator, x, auto_pad=mode, **window).run()
    (expected,) = typed(operator, x, pads=pads, **window).run()
    np.testing.assert_array_equal(result, expected)


def test_integers_are_pooled_as_they_are():
    x = np.arange(-8, 8, dtype=np.int8).reshape(1, 1, 4, 4)
    (result,) = typed("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2]).run()
    assert result.dtype == np.int8
    assert result.ravel().tolist() == [-3, -1, 5, 7]


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("kernel", ["native", "numpy"])
@pytest.mark.parametrize(
    "attributes",
    [{"strides": [2, 2]}, {"pads": [1, 0, 1, 1]}, {"dilations": [2, 1], "strides": [1, 2]}],
    ids=str,
)
def test_where_the_largest_elements_are(attributes, turned, kernel):
    x = np.random.default_rng(2).integers(0, 9, (2, 3, 6, 5)).astype(np.float32)
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2, 2],
                            storage_order=turned, **attributes)  # fmt: skip
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", 1, x.shape)],
        [helper.make_tensor_value_info("y", 1, None), helper.make_tensor_value_info("i", 7, None)],
    )  # fmt: skip
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8
    ).SerializeToString()
    wanted = onnxruntime.InferenceSession(model).run(None, {"x": x})
    with tightship.load(model, without=["native"] * (kernel == "numpy")) as loaded:
        assert [step.kernel for step in loaded.plan.steps] == [kernel]
        found = list(loaded.run({"x": x}).values())
    np.testing.assert_array_equal(found[0], wanted[0])
    np.testing.assert_array_equal(found[1], wanted[1])


def test_global_pools_reduce_every_spatial_axis():
    x = np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4)
    assert typed("GlobalAveragePool", x).run()[0].ravel().tolist() == [5.5, 17.5]
    assert typed("GlobalMaxPool", x).run()[0].ravel().tolist() == [11, 23]


def test_elements_are_put_back_where_they_were() -> None:
    x, places = np.float32([[[[5, 7], [1, 2]]]]), np.array([[[[5, 7], [13, 10]]]])
    (result,) = typed("MaxUnpool", x, places, kernel_shape=[2, 2], strides=[2, 2]).run()
    assert result.shape == (1, 1, 4, 4)
    assert {place: result.ravel()[place] for place in np.flatnonzero(result)} == {
        5: 5, 7: 7, 13: 1, 10: 2,
    }  # fmt: skip


def test_a_place_outside_the_result_is_refused() -> None:
    x, places = np.ones((1, 1, 1, 1), np.float32), np.array([[[[4]]]])
    with pytest.raises(GraphError, match="out of bounds"):
        typed("MaxUnpool", x, places, kernel_shape=[2, 2], strides=[2, 2]).run()
