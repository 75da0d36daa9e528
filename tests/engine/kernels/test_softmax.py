import numpy as np
import pytest

from tests.engine.kernels.typed import typed

X = np.random.default_rng(5).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axis", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("version", [11, 13])
def test_it_agrees_with_the_reference_of_its_opset(operator: str, axis: int, version: int):
    case = typed(operator, X, version=version, axis=axis)
    x = X
    if version == 11:
        front = axis % 3
        x = X.reshape(int(np.prod(X.shape[:front])), -1)
        axis = 1
    expected = typed(operator, x, version=13, axis=axis).reference()[0].reshape(X.shape)
    np.testing.assert_allclose(case.run()[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
def test_large_elements_do_not_overflow(operator: str):
    (result,) = typed(operator, np.full((1, 4), 1e30, np.float32)).run()
    expected = 0.25 if operator == "Softmax" else np.log(0.25)
    np.testing.assert_allclose(result, np.full((1, 4), expected), rtol=1e-6)


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_tensors_work(operator: str, shape: tuple[int, ...]):
    if operator != "Hardmax" or shape[1]:
        assert typed(operator, np.zeros(shape, np.float32)).run()[0].shape == shape


def test_the_first_of_equal_elements_is_the_one():
    (result,) = typed("Hardmax", np.array([[1, 3, 3]], np.float32)).run()
    assert result.tolist() == [[0, 1, 0]]
