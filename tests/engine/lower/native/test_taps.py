from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tightship
from tests.engine.kernels.typed import Typed, typed
from tests.engine.native_tier import assert_as_numpy, run_natively
from tests.zoo.net import Case, Net
from tests.zoo.oracle import assert_near, expected


def seeded(*shape: int) -> Any:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def check(case: Typed, threads: int) -> None:
    results = run_natively(case.node, case.inputs, case.like, threads)
    assert results is not None
    np.testing.assert_allclose(results[0], case.run()[0], rtol=1e-5, atol=1e-5)


LENGTHS = st.integers(1, 9)


@given(
    st.sampled_from(["linear", "cubic"]),
    st.sampled_from(["half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric"]),
    st.tuples(LENGTHS, LENGTHS, LENGTHS, LENGTHS), st.booleans(), st.booleans(),
    st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=80)
def test_images_are_resized(mode, where, lengths, antialias, excludes, threads):
    height, width, *resized = lengths
    assume((height, width) != tuple(resized))
    sizes = np.array([2, 3, *resized], np.int64)
    check(
        typed("Resize", seeded(2, 3, height, width), None, None, sizes, mode=mode,
              coordinate_transformation_mode=where, antialias=int(antialias),
              exclude_outside=int(excludes and mode == "cubic")),
        threads,
    )  # fmt: skip


POOLED = {
    "kernel_shape": st.lists(st.integers(1, 3), min_size=2, max_size=2),
    "strides": st.lists(st.integers(1, 3), min_size=2, max_size=2),
    "dilations": st.lists(st.integers(1, 2), min_size=2, max_size=2),
    "ceil_mode": st.integers(0, 1),
}


@given(st.fixed_dictionaries(POOLED), st.integers(0, 1), st.sampled_from([None, 0, 1]))
@settings(max_examples=80)
def test_windows_are_pooled(attributes, pad, counts_padding):
    operator, more = "MaxPool", {}
    if counts_padding is not None:
        operator, more = "AveragePool", {"count_include_pad": counts_padding}
    pads = [pad if k > 1 else 0 for k in attributes["kernel_shape"]] * 2
    check(typed(operator, seeded(2, 3, 7, 8), pads=pads, **more, **attributes), 2)


@given(
    st.fixed_dictionaries(POOLED), st.integers(0, 1), st.booleans(), st.integers(1, 3),
    st.sampled_from(["float32", "float64"]),
)  # fmt: skip
@settings(max_examples=80)
def test_places_of_the_largest_are_found(attributes, pad, turned, threads, dtype):
    x = np.random.default_rng(pad).integers(0, 5, (2, 3, 7, 8)).astype(dtype)
    x[0, 0, 2:5, 2:5] = np.nan
    pads = [pad if k > 1 else 0 for k in attributes["kernel_shape"]] * 2
    case = typed("MaxPool", x, outputs=2, pads=pads, storage_order=int(turned), **attributes)
    assert_as_numpy(case, threads)


@pytest.mark.parametrize("shape", [(2, 1, 700), (1, 2, 3, 4, 5), (1, 1, 2, 600)])
def test_places_are_found_on_one_to_three_axes(shape):
    rank = len(shape) - 2
    attributes = {"kernel_shape": [2] * rank, "strides": [1] * (rank - 1) + [2]}
    assert_as_numpy(typed("MaxPool", seeded(*shape), outputs=2, **attributes), 2)


def test_places_of_integers_are_left_to_numpy():
    case = typed("MaxPool", np.zeros((1, 1, 3), np.int8), outputs=2, kernel_shape=[2])
    assert run_natively(case.node, case.inputs, case.like) is None


def test_what_is_largest_may_be_no_number():
    x = seeded(1, 1, 1, 6)
    x[..., 2] = np.nan
    case = typed("MaxPool", x, kernel_shape=[1, 2], dilations=[1, 2])
    results = run_natively(case.node, case.inputs, case.like)
    assert results is not None
    np.testing.assert_array_equal(results[0], case.run()[0])


def after_convolution(operator: str, *more: Any, **attributes: Any) -> Case:
    """The operator on what a convolution wrote in a layout of its own."""
    net = Net()
    x = net("Conv", net.normal("x", 2, 5, 6, 7), net.weight(18, 5, 3, 3), pads=[1, 1, 1, 1])
    constants = ["" if each is None else net.constant(each) for each in more]
    net.output(net("Relu", net(operator, x, *constants, **attributes)))
    return net.case()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "case",
    [
        after_convolution("MaxPool", kernel_shape=[3, 3], dilations=[2, 2]),
        after_convolution("AveragePool", kernel_shape=[3, 3], pads=[1] * 4, dilations=[2, 2],
                          count_include_pad=1),
        after_convolution("Resize", None, None, np.array([2, 18, 13, 5]), mode="linear",
                          coordinate_transformation_mode="align_corners"),
    ],
    ids=["largest", "average", "resized"],
)  # fmt: skip
def test_images_keep_their_layout(case: Case, threads: int) -> None:
    with tightship.load(case.model, threads=threads) as model:
        assert {step.kernel for step in model.plan.steps} <= {"onednn", "native"}
        assert_near(model.run(case.feeds), expected(case.model, case.feeds))
