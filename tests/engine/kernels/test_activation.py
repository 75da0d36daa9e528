import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engine.kernels.node_suite import assert_close
from tests.engine.kernels.typed import typed
from tightship.engine.kernels.blocks import BLOCK_ELEMENTS
from tightship.graph import DType


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def hard(x: float, slope: float) -> float:
    return min(max(slope * x + 0.5, 0), 1)


FORMULAS: dict[str, Callable[[float], float]] = {
    "Celu": lambda x: max(x, 0) + min(math.expm1(min(x, 0)), 0),
    "Elu": lambda x: x if x > 0 else math.expm1(x),
    "Gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "HardSigmoid": lambda x: hard(x, 0.2),
    "HardSwish": lambda x: x * hard(x, 1 / 6),
    "LeakyRelu": lambda x: x if x > 0 else 0.01 * x,
    "Mish": lambda x: x * math.tanh(softplus(x)),
    "Relu": lambda x: max(x, 0),
    "Sigmoid": sigmoid,
    "Softplus": softplus,
    "Softsign": lambda x: x / (1 + abs(x)),
    "Swish": lambda x: x * sigmoid(x),
    "ThresholdedRelu": lambda x: x if x > 1 else 0,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", FORMULAS)
def test_an_activation_is_its_formula_across_blocks(name: str, dtype: str):
    x = np.linspace(-100, 100, BLOCK_ELEMENTS + 77).astype(dtype)
    (result,) = typed(name, x, version=24, like=[x]).run()
    expected = [FORMULAS[name](v) for v in x.astype(np.float64)]
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_nan_stays_nan(name: str):
    x = np.array([np.nan, 1], np.float32)
    (result,) = typed(name, x, version=24, like=[x]).run()
    assert np.isnan(result).tolist() == [name != "ThresholdedRelu", False]


@pytest.mark.parametrize("name", FORMULAS)
@given(st.sampled_from([(), (0,), (3, 0, 2), (1, 1)]))
def test_scalars_and_empty_tensors_work(name: str, shape: tuple[int, ...]):
    x = np.ones(shape, np.float32)
    (result,) = typed(name, x, version=24, like=[x]).run()
    assert result.shape == shape
    np.testing.assert_allclose(result, np.full(shape, FORMULAS[name](1.0)), rtol=1e-6)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_narrow_floats_are_computed_in_float32(dtype: DType):
    x = np.linspace(-8, 8, 999).astype(dtype.numpy)
    (result,) = typed("Gelu", x, like=[x]).run()
    (wide,) = typed("Gelu", x.astype(np.float32)).run()
    assert result.tobytes() == wide.astype(dtype.numpy).tobytes()


def test_gelu_by_tanh_is_close_to_gelu():
    x = np.linspace(-5, 5, 999).astype(np.float32)
    case = typed("Gelu", x, approximate="tanh")
    assert_close(case.run(), case.reference())
    np.testing.assert_allclose(case.run()[0], typed("Gelu", x).run()[0], atol=1e-3)


def test_shrink_moves_both_sides_toward_zero():
    x = np.array([-2, -0.5, 0, 0.5, 2], np.float32)
    (result,) = typed("Shrink", x, lambd=1.0, bias=0.5).run()
    assert result.tolist() == [-1.5, 0, 0, 0, 1.5]
