"""Shapes of requests against a configuration with batches."""

from types import SimpleNamespace

import pytest

from tightship.driver.oip.infer_request import InferRequest, InputTensor
from tightship.driver.oip.model_config import ModelConfig
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.request_shapes import check_configured
from tightship.graph import DType

SERVED = SimpleNamespace(
    name="m", inputs={"x": (DType.FLOAT32, (None, 4)), "z": (DType.FLOAT32, (None, None))}
)


def check(x, z, size_max=8):
    shapes = {"x": x, "z": z}
    inputs = tuple(InputTensor(name, DType.FLOAT32, of, []) for name, of in shapes.items())
    request = InferRequest("", inputs, (), is_binary=True, timeout_s=None)
    check_configured(SERVED, ModelConfig(max_batch_size=size_max), request)


def test_shapes_that_fit_are_accepted():
    for size in (1, 8):
        check((size, 4), (size, 7))
    check((9, 4), (2, 7), size_max=0)


@pytest.mark.parametrize(
    ("x", "z", "match"),
    [
        ((9, 4), (9, 1), r"batch-size must be <= 8 for 'm'.* it is 9"),
        ((0, 4), (0, 1), "and at least 1; it is 0"),
        ((2, 4), (3, 1), "input 'z' batch size does not match.*3, where 'x' has 2"),
        ((2, 5), (2, 1), r"input 'x' for model 'm'\. Expected \[-1,4\], got \[2,5\]"),
        ((2, 4, 1), (2, 1), r"Expected \[-1,4\], got \[2,4,1\]"),
        ((2, 4), (), r"Expected \[-1,-1\], got \[\]"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(x, z, match):
    with pytest.raises(OipError, match=match):
        check(x, z)
