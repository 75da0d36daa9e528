"""Emitters of oneDNN primitives for nodes; the primitives choose their layouts.

An emitter returns False, having added nothing, if oneDNN has no fast implementation.
"""

from collections.abc import Callable, Mapping

from tightship.engine.lower.steps.builder import Builder
from tightship.engine.on_demand import OnDemand, of_onnx
from tightship.graph import Node
from tightship.graph.layer import TRAINING

Emitter = Callable[[Builder, Node], bool]


def _of_training(operators: str) -> list[tuple[str, str]]:
    return [(TRAINING, operator) for operator in operators.split()]


EMITTERS: Mapping[tuple[str, str], Emitter] = OnDemand(
    "tightship.engine.lower.onednn",
    {
        "convolution.CONVOLUTION": [
            *of_onnx("Conv ConvTranspose"),
            ("tightship", "ScaledConv"),
        ],
        "convolution_gradient.CONVOLUTION_GRADIENTS": _of_training("ConvGradData ConvGradWeights"),
        "elementwise.ELEMENTWISE": of_onnx(
            "Abs Add Clip Div Elu Exp Gelu HardSigmoid HardSwish LeakyRelu Max Min Mish Mul Neg "
            "Relu Sigmoid Sqrt Sub Sum Swish Tanh"
        ),
        "elementwise_gradient.ELEMENTWISE_GRADIENTS": _of_training(
            "EluGrad GeluGrad HardSigmoidGrad HardSwishGrad LeakyReluGrad ReluGrad SigmoidGrad "
            "SoftplusGrad SwishGrad TanhGrad"
        ),
        "matmul.MATMUL": of_onnx("Gemm MatMul"),
        "movement.MOVEMENT": [*of_onnx("Concat Transpose"), ("tightship", "ChannelShuffle")],
        "normalization.NORMALIZATION": of_onnx(
            "BatchNormalization LRN LayerNormalization LogSoftmax Softmax"
        ),
        "normalization_gradient.NORMALIZATION_GRADIENTS": _of_training(
            "LayerNormalizationGrad LogSoftmaxGrad SoftmaxGrad"
        ),
        "pooling.POOLING": of_onnx("AveragePool GlobalAveragePool GlobalMaxPool MaxPool"),
        "resampling.RESAMPLING": of_onnx("Resize"),
        "transposed.TRANSPOSED": _of_training("TransposedMatMul"),
    },
)
"""Emitters by domain and operator."""

QUANTIZED_EMITTERS: Mapping[tuple[str, str], Emitter] = OnDemand(
    "tightship.engine.lower.onednn",
    {
        "integer_convolution.INTEGER_CONVOLUTION": of_onnx("ConvInteger"),
        "integer_product.INTEGER_PRODUCT": of_onnx("MatMulInteger"),
        "pooling.QUANTIZED_POOLING": of_onnx("MaxPool"),
        "quantized_addition.QUANTIZED_ADDITION": of_onnx("Add"),
        "quantized_convolution.QUANTIZED_CONVOLUTION": of_onnx("Conv"),
        "quantized_product.QUANTIZED_PRODUCT": of_onnx("Gemm MatMul"),
    },
)
"""Emitters for operands that represent real numbers by 8-bit integers."""
