"""Whether outputs are what the suite expects: kinds, dtypes and shapes exactly, numbers nearly."""

from collections.abc import Collection
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.test_case import TestCase

import tightship.backend
from tightship.errors import TightshipError

UNREPEATABLE = frozenset(
    f"test_bernoulli{kind}"
    for kind in ("", "_double", "_double_expanded", "_expanded", "_seed", "_seed_expanded")
)
"""Draw numbers from a generator that the standard leaves open: only types are compared."""

HALF_RTOL = {"bfloat16": 2.0**-6, "float16": 2.0**-9}
"""Two units in the last place: what rounding each intermediate value, or only the last, makes."""


def failure_of(case: TestCase, without: Collection[str] = ()) -> str | None:
    """Why a case fails, with passes left out; None where it passes."""
    try:
        rep = tightship.backend.prepare(case.model, without=without)
        for inputs, expected in case.data_sets:
            outputs = rep.run([value_of(stored) for stored in inputs])
            wanted = tuple(value_of(stored) for stored in expected)
            atol = 1.0 if case.name in UNREPEATABLE else case.atol
            assert_similar(outputs, wanted, case.rtol, atol)
    except (AssertionError, TightshipError) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


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
    elif expected.dtype.kind in "iufc" and expected.dtype.name not in HALF_RTOL:
        np.testing.assert_allclose(actual, expected, rtol, atol)
    else:
        rtol = max(rtol, HALF_RTOL.get(expected.dtype.name, 0))
        pair = actual.astype(np.float64), expected.astype(np.float64)
        np.testing.assert_allclose(*pair, rtol, atol)
