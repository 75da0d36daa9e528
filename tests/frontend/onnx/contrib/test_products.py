"""Activations, products and normalizations, and what is refused."""

from typing import Any

import numpy as np
import pytest

import tightship
from tests.frontend.onnx.contrib.case import RANDOM, Case, assert_as_onnxruntime, integers, normal
from tightship.errors import GraphError

X = {"x": normal(2, 5, 12)}


@pytest.mark.parametrize(
    "case",
    [
        Case("Gelu", X),
        Case("BiasGelu", X | {"b": normal(12)}),
        Case("FastGelu", X),
        Case("FastGelu", X | {"b": normal(12)}),
        Case("QuickGelu", X),
        Case("QuickGelu", X, {"alpha": 0.7}),
    ],
    ids=lambda case: f"{case.operator}{len(case.inputs)}{case.attributes}",
)
def test_an_activation(case: Case) -> None:
    assert_as_onnxruntime(case)


@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("outer", [(), (3,), (2, 3)])
def test_a_product_of_turned_operands(turned: tuple[int, int], outer: tuple[int, ...]) -> None:
    left = normal(*outer, *((4, 7), (7, 4))[turned[0]])
    right = normal(*outer, *((7, 5), (5, 7))[turned[1]])
    attributes = {"transA": turned[0], "transB": turned[1], "alpha": 0.25}
    assert_as_onnxruntime(Case("FusedMatMul", {"a": left, "b": right}, attributes))


ACTIVATED = [
    {},
    {"activation": "Relu"},
    {"activation": "LeakyRelu", "activation_params": [0.2]},
    {"activation": "Clip", "activation_params": [-0.5, 0.5]},
    {"activation": "HardSigmoid", "activation_params": [0.3, 0.4]},
    {"activation": "Tanh"},
]


@pytest.mark.parametrize("attributes", ACTIVATED, ids=str)
@pytest.mark.parametrize("residual", [False, True])
def test_a_convolution_with_what_follows_it(attributes: dict[str, Any], *, residual: bool) -> None:
    inputs = {"x": normal(1, 3, 8, 8), "w": normal(6, 3, 3, 3), "b": normal(6)}
    if residual:
        inputs["z"] = normal(1, 6, 4, 4)
    given = {"pads": [1, 1, 1, 1], "strides": [2, 2], **attributes}
    assert_as_onnxruntime(Case("FusedConv", inputs, given, weights=("w", "b")), within=1e-4)


@pytest.mark.parametrize("activation", [{"activation": "Relu"}, {"activation": "LeakyRelu",
                                        "activation_alpha": 0.3}], ids=str)  # fmt: skip
def test_a_gemm_with_an_activation(activation: dict[str, Any]) -> None:
    inputs = {"a": normal(4, 6), "b": normal(5, 6), "c": normal(5)}
    given = {"transB": 1, "alpha": 0.5, "beta": 2.0, **activation}
    assert_as_onnxruntime(Case("FusedGemm", inputs, given))


SKIP = {"x": normal(2, 5, 12), "skip": normal(2, 5, 12), "scale": normal(12)}


@pytest.mark.parametrize("sum_too", [False, True])
@pytest.mark.parametrize("bias", [None, normal(12)], ids=["", "bias"])
@pytest.mark.parametrize("simple", [False, True])
def test_normalized_sums(bias: Any, *, sum_too: bool, simple: bool) -> None:
    outputs = ("y", "", "", "sum") if sum_too else ("y",)
    name = "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    shift = {} if simple else {"shift": normal(12)}
    case = Case(name, {**SKIP, **shift, "bias": bias}, {"epsilon": 1e-5}, outputs)
    assert_as_onnxruntime(case)


@pytest.mark.parametrize("operator", ["LayerNormalization", "SimplifiedLayerNormalization"])
def test_normalizations_within_onnx_domain(operator: str) -> None:
    case = Case(
        operator, {**X, "scale": normal(12)}, {"axis": -1, "epsilon": 1e-3}, domain="", opset=13
    )
    assert_as_onnxruntime(case)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_embeddings_normalized(*, segments: bool, places: bool, masked: bool) -> None:
    ids = RANDOM.integers(0, 20, (2, 6)).astype(np.int32)
    inputs = {
        "ids": ids, "segments": ids % 2 if segments else None, "words": normal(20, 8),
        "positions": normal(9, 8), "segment_table": normal(2, 8) if segments else None,
        "scale": normal(8), "shift": normal(8),
        "mask": (ids % 3 > 0).astype(np.int32) if masked else None,
        "places": (ids[::-1] % 9).astype(np.int32) if places else None,
    }  # fmt: skip
    assert_as_onnxruntime(Case("EmbedLayerNormalization", inputs, outputs=("y", "lengths", "sum")))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (Case("NhwcMaxPool", {"x": integers(np.uint8, 1, 4, 4, 3)}, {"kernel_shape": [2, 2]}),
         ["NhwcMaxPool", "com.microsoft", "FusedConv"]),
        (Case("FusedMatMul", {"a": normal(3, 2, 4), "b": normal(3, 4, 5)}, {"transBatchA": 1}),
         ["`node`", "transBatchA", "only 0"]),
        (Case("FusedConv", {"x": normal(1, 3, 4, 4), "w": normal(3, 3, 1, 1)},
              {"activation": "Softsign"}), ["`node`", "Softsign", "LeakyRelu"]),
        (Case("Attention", {"x": normal(2, 5, 7), "w": normal(7, 36), "b": normal(36),
              "mask": np.ones((2, 1, 5, 5), np.int32)}, {"num_heads": 3}), ["`node`", "rank 4"]),
        (Case("SkipLayerNormalization", SKIP, outputs=("y", "mean")), ["`node`", "`mean`"]),
    ],
    ids=lambda value: value.operator if isinstance(value, Case) else "",
)  # fmt: skip
def test_what_is_not_supported_is_refused_by_name(case: Case, words: list[str]) -> None:
    with pytest.raises(GraphError) as caught:
        tightship.load(case.model)
    assert all(word in str(caught.value) for word in words)
