from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.typed import typed

X = np.random.default_rng(23).standard_normal((1, 2, 5, 6)).astype(np.float32)


def by_scales(x: Any, *scales: float, **options: Any) -> Any:
    return typed("Resize", x, None, np.array(scales, np.float32), **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(
    "coordinates", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
)
@pytest.mark.parametrize("scales", [(2, 2), (0.5, 1.6), (1, 3), (0.4, 0.34)])
def test_each_mode_agrees_with_the_reference(mode: str, coordinates: str, scales: Any):
    options = {"mode": mode, "coordinate_transformation_mode": coordinates}
    case = by_scales(X, 1, 1, *scales, **options)
    (expected,) = case.reference()
    np.testing.assert_allclose(case.run()[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@given(st.floats(0.3, 4), st.booleans())
def test_a_constant_stays_constant(mode: str, scale: float, smooth: bool):
    x = np.full((1, 1, 6, 7), 2.5, np.float64)
    (result,) = by_scales(x, 1, 1, scale, 1 / scale, mode=mode, antialias=int(smooth)).run()
    np.testing.assert_allclose(result, np.full_like(result, 2.5), rtol=1e-6)


@given(st.integers(1, 4))
def test_whole_factors_repeat_the_nearest_element(factor: int):
    (result,) = by_scales(X, 1, 1, factor, factor).run()
    np.testing.assert_array_equal(result, X.repeat(factor, 2).repeat(factor, 3))


def test_integers_may_be_repeated_but_not_mixed():
    x = np.arange(4, dtype=np.uint8).reshape(1, 1, 2, 2)
    assert by_scales(x, 1, 1, 2, 1).run()[0].ravel().tolist() == [0, 1, 0, 1, 2, 3, 2, 3]
    assert not by_scales(x, 1, 1, 2, 1, mode="linear").is_covered


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_sizes_may_keep_the_aspect_ratio(policy: str):
    sizes = np.array([10, 9], np.int64)
    case = typed(
        "Resize", X, None, None, sizes, axes=[2, 3], mode="linear", keep_aspect_ratio_policy=policy
    )
    np.testing.assert_allclose(case.run()[0], case.reference()[0], rtol=1e-4, atol=1e-5)


def test_before_opset_11_positions_are_not_centred():
    case = typed("Upsample", X, np.array([1, 1, 2, 2], np.float32), version=9, mode="linear")
    (expected,) = by_scales(
        X, 1, 1, 2, 2, mode="linear", coordinate_transformation_mode="asymmetric"
    ).run()
    np.testing.assert_array_equal(case.run()[0], expected)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_the_first_upsample_has_its_scales_in_an_attribute(mode: str):
    listed = typed("Upsample", X, version=7, scales=[1.0, 1.0, 2.0, 3.0], mode=mode)
    given_as_input = typed("Upsample", X, np.array([1, 1, 2, 3], np.float32), version=9, mode=mode)
    np.testing.assert_array_equal(listed.run()[0], given_as_input.run()[0])


def test_a_crop_has_no_kernel():
    options = {"coordinate_transformation_mode": "tf_crop_and_resize"}
    assert not by_scales(X, 1, 1, 2, 2, **options).is_covered
