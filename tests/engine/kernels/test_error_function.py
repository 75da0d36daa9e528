import math

import numpy as np
import pytest

from tests.engine.kernels.typed import typed


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 4e-7), (np.float64, 1e-10)])
def test_it_agrees_with_the_c_library(dtype: type, tolerance: float):
    x = np.concatenate([np.linspace(-7, 7, 20001), np.geomspace(1e-30, 1, 100)]).astype(dtype)
    (result,) = typed("Erf", x).run()
    expected = [math.erf(v) for v in x.astype(np.float64)]
    np.testing.assert_allclose(result.astype(np.float64), expected, rtol=tolerance, atol=0)


def test_it_ends_at_one_and_keeps_nan():
    x = np.array([np.inf, -np.inf, np.nan, 1e30, 0.0, -0.0], np.float32)
    (result,) = typed("Erf", x).run()
    np.testing.assert_array_equal(result, np.array([1, -1, np.nan, 1, 0.0, -0.0], np.float32))
    assert np.signbit(result[-1])
