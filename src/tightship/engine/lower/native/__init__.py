"""Emitters of native kernels for nodes that oneDNN has no fast primitive for.

An emitter returns False, or raises NotCoveredError, having added nothing, if its kernels do not
cover the node.
"""

from collections.abc import Callable, Mapping

from tightship.engine.kernels.kernel_context import NotCoveredError
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.on_demand import OnDemand, of_onnx
from tightship.graph import Node
from tightship.graph.layer import TRAINING

NativeEmitter = Callable[[Builder, Node], bool]


def _of_training(operators: str) -> list[tuple[str, str]]:
    return [(TRAINING, operator) for operator in operators.split()]


NATIVE_EMITTERS: Mapping[tuple[str, str], NativeEmitter] = OnDemand(
    "tightship.engine.lower.native",
    {
        "attention.ATTENTION": [("tightship", "Attention")],
        "depthwise.DEPTHWISE": [("tightship", "DepthwiseConv")],
        "elementwise.ELEMENTWISE": of_onnx(
            "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr "
            "BitwiseXor Cast CastLike Ceil Celu Clip Cos Cosh Div Elu Equal Erf Exp Floor Gelu "
            "Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu Less LessOrEqual "
            "Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Reciprocal Relu Round Selu Shrink "
            "Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh ThresholdedRelu "
            "Where Xor"
        ),
        "folding.FOLDING": of_onnx("Col2Im"),
        "generate.GENERATE": of_onnx("ConstantOfShape EyeLike OneHot Range Trilu"),
        "indexed.INDEXED": of_onnx(
            "Gather GatherElements GatherND Scatter ScatterElements ScatterND"
        ),
        "lookup.LOOKUP": of_onnx("CenterCropPad Pad"),
        "movement.MOVEMENT": of_onnx(
            "Concat DepthToSpace Expand Slice SpaceToDepth Split Tile Transpose"
        ),
        "quantize.QUANTIZE": of_onnx("DequantizeLinear DynamicQuantizeLinear QuantizeLinear"),
        "ranks.RANKS": of_onnx("ArgMax ArgMin CumSum Hardmax TopK"),
        "recurrent.RECURRENT": [("tightship", name) for name in ("GRU", "LSTM", "RNN")],
        "recurrent_gradient.RECURRENT_GRADIENT": [
            ("tightship", f"{name}Grad") for name in ("GRU", "LSTM", "RNN")
        ],
        "reduction.REDUCTION": of_onnx(
            "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin "
            "ReduceProd ReduceSum ReduceSumSquare"
        ),
        "rotary.ROTARY": [("tightship", "Rotary"), ("", "RotaryEmbedding")],
        "rows.NORMALIZATION": of_onnx(
            "GroupNormalization InstanceNormalization LayerNormalization LogSoftmax "
            "RMSNormalization Softmax"
        ),
        "sampling.SAMPLING": of_onnx("GridSample"),
        "sequence.SEQUENCE": of_onnx("ReverseSequence TensorScatter"),
        "training.NATIVE_TRAINING": _of_training(
            "AdamUpdate BatchNormalizationGrad BatchNormalizationTraining ClipScale "
            "DropoutTraining GatherGrad MaxPoolGrad MomentumUpdate RunningUpdate SgdUpdate "
            "SoftmaxCrossEntropyLossGrad SquaresAdded"
        ),
        "taps.TAPS": of_onnx("AveragePool MaxPool Resize Upsample"),
    },
)
"""Emitters by domain and operator."""


def emit_native(builder: Builder, node: Node) -> bool:
    """Add the steps of a node whose values are planned; return False if no kernel covers it."""
    emitter = NATIVE_EMITTERS.get((node.domain, node.operator))
    try:
        return emitter is not None and emitter(builder, node)
    except NotCoveredError:
        return False
