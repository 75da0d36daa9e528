"""Whether outputs are what the suite expects: kinds, dtypes and shapes exactly, numbers nearly."""

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

BFLOAT16_RTOL = 2.0**-6
"""Two units in the last place."""


def value_of(stored: Any) -> Any:
    """What the suite stored, a tensor message as an array."""
    return numpy_helper.to_array(stored) if isinstance(stored, onnx.TensorProto) else stored


def assert_similar(actual: Any, expected: Any, rtol: float, atol: float) -> None:
    """Raise AssertionError unless `actual` is `expected`."""
    if expected is None:
        assert actual is None
    elif isinstance(expected, (list, tuple)):
        assert isinstance(actual, (list, tuple)), type(actual)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_similar(one, other, rtol, atol)
    else:
        _assert_similar_arrays(actual, np.asarray(expected), rtol, atol)


def _assert_similar_arrays(
    actual: Any, expected: np.ndarray[Any, Any], rtol: float, atol: float
) -> None:
    assert isinstance(actual, np.ndarray), type(actual)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if expected.dtype == object or expected.dtype.kind in "SUb":
        np.testing.assert_array_equal(actual, expected)
    elif expected.dtype.kind in "iufc":
        np.testing.assert_allclose(actual, expected, rtol, atol)
    else:
        rtol = max(rtol, BFLOAT16_RTOL) if expected.dtype.name == "bfloat16" else rtol
        pair = actual.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(*pair, rtol, atol)
