import numpy as np
import pytest
from onnx import TensorProto

from tests.engine.kernels.typed import typed
from tightship.engine.kernels.blocks import BLOCK_ELEMENTS


def test_reals_are_truncated_to_integers_and_compared_with_zero_to_bools():
    x = np.array([-1.7, -0.5, 0.0, 0.5, 2.9], np.float32)
    assert typed("Cast", x, to=TensorProto.INT32).run()[0].tolist() == [-1, 0, 0, 0, 2]
    assert typed("Cast", x, to=TensorProto.BOOL).run()[0].tolist() == [
        True,
        True,
        False,
        True,
        True,
    ]


def test_a_nan_is_true():
    assert typed("Cast", np.array([np.nan]), to=TensorProto.BOOL).run()[0].tolist() == [True]


@pytest.mark.parametrize("to", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
@pytest.mark.parametrize("saturate", [0, 1])
def test_narrow_floats_saturate_by_default(to: int, saturate: int):
    x = np.linspace(-1e5, 1e5, BLOCK_ELEMENTS + 9).astype(np.float32)
    case = typed("Cast", x, to=to, saturate=saturate)
    assert case.run()[0].tobytes() == case.reference()[0].tobytes()


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_bits_are_kept_as_they_are(shape: tuple[int, ...]):
    x = np.full(shape, 1.5, np.float32)
    (result,) = typed("BitCast", x, version=26, to=TensorProto.UINT32).run()
    assert result.tobytes() == x.tobytes()


def test_complex_numbers_have_no_kernel():
    assert not typed(
        "Cast", np.ones(2, np.complex64), like=[np.ones(2, np.float32)], to=1
    ).is_covered
