"""Operators on quantized tensors."""

from typing import Any

import numpy as np
import pytest

from tests.frontend.onnx.contrib.case import Case, assert_as_onnxruntime, integers, normal
from tests.processor import HAS_VNNI

NARROW = [np.uint8, np.int8]


def scales(dtype: Any, prefix: str, scale: float, zero: int) -> dict[str, Any]:
    return {f"{prefix}s": np.float32(scale), f"{prefix}z": np.array(zero, dtype)}


def quantized(dtype: Any, name: str, scale: float, zero: int, *shape: int) -> dict[str, Any]:
    return {name: integers(dtype, *shape), **scales(dtype, name, scale, zero)}


def weights(dtype: Any, *shape: int) -> Any:
    """Integers whose products ONNX Runtime sums exactly: without VNNI, it saturates at 16 bits."""
    return integers(dtype, *shape) // dtype(1 if HAS_VNNI or dtype is np.uint8 else 2)


def of_parameters(operator: str, inputs: dict[str, Any], **attributes: Any) -> Case:
    names = tuple(name for name in inputs if name[-1] in "sz" and len(name) == 2)
    return Case(operator, inputs, attributes, weights=names)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("operator", ["QLinearAdd", "QLinearMul"])
def test_quantized_arithmetic(operator: str, dtype: Any) -> None:
    inputs = {
        **quantized(dtype, "a", 0.05, 3, 2, 4, 5), **quantized(dtype, "b", 0.02, 7, 2, 4, 5),
        **scales(dtype, "y", 0.09, 11),
    }  # fmt: skip
    assert_as_onnxruntime(of_parameters(operator, inputs), step=1)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("last", [0, 1])
def test_quantized_poolings(dtype: Any, last: int) -> None:
    inputs = {**quantized(dtype, "a", 0.05, 3, 1, 6, 6, 6), **scales(dtype, "y", 0.05, 9)}
    case = of_parameters("QLinearGlobalAveragePool", inputs, channels_last=last)
    assert_as_onnxruntime(case, step=1)
    case = of_parameters(
        "QLinearAveragePool", inputs, channels_last=last, kernel_shape=[3, 3], strides=[2, 2]
    )
    assert_as_onnxruntime(case, step=1)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    ("operator", "attributes"), [("QLinearLeakyRelu", {"alpha": 0.2}), ("QLinearSigmoid", {})]
)
def test_quantized_activations(operator: str, attributes: dict[str, Any], dtype: Any) -> None:
    inputs = {**quantized(dtype, "a", 0.05, 3, 4, 40), **scales(dtype, "y", 0.01, 9)}
    assert_as_onnxruntime(of_parameters(operator, inputs, **attributes), step=1)


@pytest.mark.parametrize("opset", [9, 12, 13])
@pytest.mark.parametrize("axis", [-1, 1, 2])
def test_a_quantized_softmax_before_it_had_one_axis(opset: int, axis: int) -> None:
    inputs = {**quantized(np.uint8, "a", 0.05, 3, 2, 3, 4), **scales(np.uint8, "y", 1 / 256, 0)}
    given = of_parameters("QLinearSoftmax", inputs, axis=axis, opset=opset)
    assert_as_onnxruntime(given, step=1)


@pytest.mark.parametrize("dtype", NARROW)
def test_quantized_parts_are_joined(dtype: Any) -> None:
    inputs = {
        **scales(dtype, "y", 0.04, 5), **quantized(dtype, "a", 0.05, 3, 2, 3, 4),
        **quantized(dtype, "b", 0.03, 1, 2, 5, 4),
    }  # fmt: skip
    assert_as_onnxruntime(of_parameters("QLinearConcat", inputs, axis=1), step=1)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("alpha", [1.0, 0.5])
def test_a_quantized_gemm(turned: int, alpha: float, *, real: bool) -> None:
    inputs = {
        **quantized(np.uint8, "a", 0.05, 120, 3, 8),
        "b": weights(np.int8, *((6, 8) if turned else (8, 6))),
        "bs": np.linspace(0.01, 0.02, 6, dtype=np.float32), "bz": np.zeros(6, np.int8),
        "c": np.arange(-300, 300, 100, dtype=np.int32),
    }  # fmt: skip
    if not real:
        inputs |= scales(np.uint8, "y", 0.3, 100)
    case = of_parameters("QGemm", inputs, transB=turned, alpha=alpha)
    case.weights = (*case.weights, "b", "c")
    assert_as_onnxruntime(case, step=1)


@pytest.mark.parametrize("bias", [None, normal(6)], ids=["", "bias"])
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("each", [False, True])
def test_a_product_with_what_is_quantized_in_the_run(bias: Any, dtype: Any, *, each: bool) -> None:
    scale = np.linspace(0.01, 0.02, 6, dtype=np.float32) if each else np.float32(0.01)
    zero = np.full(scale.shape, 0 if dtype is np.int8 else 128, dtype)
    inputs = {"a": normal(2, 3, 8), "b": weights(dtype, 8, 6), "bs": scale, "bz": zero, "c": bias}
    case = of_parameters("DynamicQuantizeMatMul", inputs)
    case.weights = (*case.weights, "b")
    assert_as_onnxruntime(case, within=1e-3)


@pytest.mark.parametrize("bias", [None, normal(6)], ids=["", "bias"])
@pytest.mark.parametrize("zero", [False, True])
def test_a_product_of_integers_in_real_numbers(bias: Any, *, zero: bool) -> None:
    inputs = {
        "a": integers(np.uint8, 3, 8), "b": weights(np.int8, 8, 6),
        "as": np.array(0.05, np.float32), "bs": np.array(0.01, np.float32),
        "az": np.array(99, np.uint8) if zero else None, "bz": None, "c": bias,
    }  # fmt: skip
    case = Case("MatMulIntegerToFloat", inputs, weights=("b", "bs"))
    assert_as_onnxruntime(case, within=1e-4)
