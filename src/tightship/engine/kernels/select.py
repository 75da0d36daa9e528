"""Finds the kernel of a node."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tightship.engine.kernels.failure import named
from tightship.engine.kernels.kernel import Array, Kernel, Run
from tightship.engine.kernels.kernel_context import Builder, KernelContext, NotCoveredError
from tightship.engine.on_demand import OnDemand, names
from tightship.graph import Constant, Node, Value
from tightship.graph.layer import TRAINING

BUILDERS: Mapping[str, Builder] = OnDemand(
    "tightship.engine.kernels",
    {
        "activation.ACTIVATIONS": names(
            "Celu Elu Erf Gelu HardSigmoid HardSwish LeakyRelu Mish Relu Selu Shrink Sigmoid "
            "Softplus Softsign Swish ThresholdedRelu"
        ),
        "cast.CAST": names("BitCast Cast CastLike"),
        "convolution.CONVOLUTION": names("Conv ConvTranspose"),
        "elementwise.ELEMENTWISE": names(
            "Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr "
            "BitwiseXor Ceil Clip Cos Cosh Div Equal Exp Floor Greater GreaterOrEqual IsInf IsNaN "
            "Less LessOrEqual Log Max Mean Min Mod Mul Neg Not Or PRelu Pow Reciprocal Round Sign "
            "Sin Sinh Sqrt Sub Sum Tan Tanh Where Xor"
        ),
        "gather.GATHER": names("Gather GatherElements GatherND Scatter ScatterElements ScatterND"),
        "generate.GENERATE": names(
            "Constant ConstantOfShape CumProd CumSum EyeLike OneHot Range Shape Size Trilu"
        ),
        "matmul.MATMUL": names("Einsum Gemm MatMul MatMulInteger QLinearMatMul"),
        "movement.MOVEMENT": names(
            "Concat DepthToSpace Dropout Expand Flatten Identity Reshape Slice SpaceToDepth Split "
            "Squeeze Tile Transpose Unsqueeze"
        ),
        "normalization.NORMALIZATION": names(
            "BatchNormalization GroupNormalization InstanceNormalization LRN LayerNormalization "
            "LpNormalization RMSNormalization"
        ),
        "padding.PADDING": names("Pad"),
        "pooling.POOLING": names("AveragePool GlobalAveragePool GlobalMaxPool LpPool MaxPool"),
        "quantize.QUANTIZE": names("DequantizeLinear DynamicQuantizeLinear QuantizeLinear"),
        "recurrent.RECURRENT": names("GRU LSTM RNN"),
        "reduction.REDUCTION": names(
            "ArgMax ArgMin ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
            "ReduceMin ReduceProd ReduceSum ReduceSumSquare"
        ),
        "resize.RESIZE": names("Resize Upsample"),
        "softmax.SOFTMAX": names("Hardmax LogSoftmax Softmax"),
    },
)
"""NumPy kernel builders by operator."""


def numpy_kernel(
    node: Node,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    constants: Mapping[str, Constant],
) -> Kernel | None:
    """Return the NumPy kernel of a node; None if this tier does not cover it.

    The operator, its attributes, opset version or dtypes, or a parameter known only while running
    (`starts` of a Slice), can be the reason for None.

    Args:
        node: Node; its `version` defines the operator.
        inputs: Types in the order of `node.inputs`, None for those left out.
        outputs: Types in the order of `node.outputs`, None for those left out.
        constants: Values known before the run, by name.
    """
    builder = _builder(node)
    if builder is None:
        return None
    if not all(value is None or value.is_static for value in (*inputs, *outputs)):
        return None
    context = KernelContext(node, tuple(inputs), tuple(outputs), constants)
    try:
        kernel = builder(context)
    except NotCoveredError:
        return None
    run = _guarded(node, kernel.run)
    compatibility = replace(context, constants=context.consulted)
    return Kernel(f"numpy:{kernel.name}", run, kernel.scratch_bytes, kernel.in_place, compatibility)


def _builder(node: Node) -> Builder | None:
    if node.domain == TRAINING:
        from tightship.engine.kernels.gradient import GRADIENT_BUILDERS

        return GRADIENT_BUILDERS.get(node.operator)
    return BUILDERS.get(node.operator) if node.domain in ("", "ai.onnx") else None


def _guarded(node: Node, run: Run) -> Run:
    """Silence NumPy's warnings of infinities and NaN, and name the node in errors."""

    def quiet(
        inputs: Sequence[Array | None], outputs: Sequence[Array | None], scratch: Array | None
    ) -> None:
        with np.errstate(all="ignore"), named(node, "be run on these operands"):
            run(inputs, outputs, scratch)

    return quiet
