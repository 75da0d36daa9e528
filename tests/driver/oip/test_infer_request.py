"""Requests with numbers that nothing can hold."""

import json

import pytest

from tightship.driver.oip.infer_request import ELEMENTS_MAX, TIMEOUT_US_MAX, decode, timeout_s_of
from tightship.driver.oip.refusal import OipError


def request(shape, **parameters):
    tensor = {"name": "x", "datatype": "FP32", "shape": shape, "data": []}
    return json.dumps({"inputs": [tensor], "parameters": parameters}).encode()


@pytest.mark.parametrize("shape", [[0, 10**30], [1 << 62, 0], [0, 1 << 47, 4], [1 << 24] * 3])
def test_a_shape_that_no_array_can_have_is_refused(shape):
    with pytest.raises(OipError, match=r"'shape'.*too large"):
        decode(request(shape), None)


@pytest.mark.parametrize("shape", [[0], [], [ELEMENTS_MAX, 0], [2, 3, 0, 4]])
def test_an_empty_tensor_has_any_shape_up_to_that(shape):
    assert decode(request(shape), None).inputs[0].shape == tuple(shape)


@pytest.mark.parametrize(
    ("timeout_us", "timeout_s"),
    [
        (0, None),
        (1, 1e-6),
        (-5, -5e-6),
        (TIMEOUT_US_MAX + 1, None),
        (1 << 63, None),
        (10**400, None),
    ],
)
def test_a_timeout_too_long_to_wait_for_is_none(timeout_us, timeout_s):
    assert timeout_s_of(timeout_us) == timeout_s
    assert decode(request([0], timeout=timeout_us), None).timeout_s == timeout_s
