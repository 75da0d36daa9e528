"""Operators of gradients besides ONNX's: signatures, types, in-place pairs.

They belong to the domain `DOMAIN`. Their NumPy kernels define them (`engine/kernels/gradient`).
Their attributes are those of the forward node, and their version is the opset version that defines
that node. `dy` is the gradient of the forward node's first output; an output may be left out. An
update with an attribute `start` changes the rows of a weight from there on, as many as its gradient
has; a `GatherGrad` with `start` and `length` returns rows from there on, of an axis of that length,
as many as `shape` says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.graph.ir import AttributeValue
from tightship.graph.layer import TRAINING
from tightship.graph.layout import DType

DOMAIN = TRAINING

Type = tuple[DType, tuple[int, ...]]
"""Type and shape of a static value."""
Attributes = Mapping[str, AttributeValue]
Infer = Callable[[Sequence[Type | None], Attributes], list[Type]]
"""Function from the types of inputs, None if left out, and attributes to those of all outputs."""


@dataclass(frozen=True, slots=True)
class Operator:
    """Signature of an operator.

    Attributes:
        inputs: Names of the inputs; a question mark marks optional ones.
        outputs: Names of the outputs.
        infer: Function that infers the types of the outputs.
        in_place: Pairs (output index, input index) that may be one buffer.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    infer: Infer
    in_place: tuple[tuple[int, int], ...] = ()


def types_of(
    operator: str, inputs: Sequence[Type | None], attributes: Attributes
) -> tuple[Type, ...]:
    """Infer the types of the outputs of an operator of `DOMAIN`."""
    return tuple(OPERATORS[operator].infer(inputs, attributes))


def _given(kind: Type | None) -> Type:
    assert kind is not None
    return kind


def _like(*places: int) -> Infer:
    """Give each output the type of an input."""
    return lambda inputs, _: [_given(inputs[place]) for place in places]


def _scalars(*dtypes: DType) -> Infer:
    """Make each output one number."""
    return lambda _, __: [(dtype, ()) for dtype in dtypes]


def _shaped(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """Give the first output the shape in the node's attributes."""
    return [(_given(inputs[0])[0], _dimensions(attributes["shape"]))]


def _dimensions(shape: AttributeValue) -> tuple[int, ...]:
    assert isinstance(shape, tuple)
    return tuple(int(length) for length in shape)


def _weights(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """Infer the gradients of weights, and of the bias: one number for each filter."""
    ((dtype, shape),) = _shaped(inputs, attributes)
    return [(dtype, shape), (dtype, shape[:1])]


def _product(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """Infer a matrix product, either operand transposed, leading axes broadcast."""
    (dtype, a), (_, b) = (_given(value) for value in inputs)
    rows = a[-1] if attributes.get("transA") else a[-2]
    columns = b[-2] if attributes.get("transB") else b[-1]
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    return [(dtype, (*batch, rows, columns))]


def _states(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Infer the gradients of the operands of an LSTM, a GRU or an RNN, optional ones included."""
    x, w, r, states = (_given(inputs[place]) for place in (0, 1, 2, 6))
    dtype, (_times, directions, batch, size) = states
    state = (dtype, (directions, batch, size))
    return [x, w, r, (dtype, (directions, 2 * w[1][1])), state, state]


def _normalized(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Infer the result, and a mean and a variance of each channel."""
    dtype, shape = _given(inputs[0])
    return [(dtype, shape), (dtype, shape[1:2]), (dtype, shape[1:2])]


def _dropped(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Infer the result, and the mask of kept elements."""
    dtype, shape = _given(inputs[0])
    return [(dtype, shape), (DType.BOOL, shape)]


_DY_OVER = ((0, 0),)
_BOTH_OVER = ((0, 0), (0, 1))

_OF_X = Operator(("dy", "x"), ("dx",), _like(0), _BOTH_OVER)
_OF_Y = Operator(("dy", "y"), ("dx",), _like(0), _BOTH_OVER)
_ROWS = Operator(("dy", "y"), ("dx",), _like(0), _DY_OVER)
_CELL = Operator(
    ("x", "w", "r", "b?", "h?", "c?", "states", "dy?", "dlast?", "dcell?"),
    ("dx", "dw", "dr", "db", "dh", "dc"),
    _states,
)
_LOSS = ("labels", "weights?")

OPERATORS: Mapping[str, Operator] = {
    "AdamUpdate": Operator(
        ("weight", "gradient", "mean", "square", "step", "rate?", "scale?"),
        ("weight", "mean", "square"),
        _like(0, 2, 3), ((0, 0), (1, 2), (2, 3)),
    ),
    "AveragePoolGrad": Operator(("dy",), ("dx",), _shaped),
    "BatchNormalizationTraining": Operator(
        ("x", "scale", "bias"), ("y", "mean", "variance"), _normalized, _DY_OVER
    ),
    "BatchNormalizationGrad": Operator(
        ("dy", "x", "scale", "mean", "variance"), ("dx", "dscale", "dbias"),
        _like(0, 2, 2), _DY_OVER,
    ),
    "ClipGrad": Operator(("dy", "x", "min?", "max?"), ("dx",), _like(0), _BOTH_OVER),
    "ClipScale": Operator(("total",), ("scale", "norm"), _scalars(DType.FLOAT32, DType.FLOAT32)),
    "ConvGradData": Operator(("dy", "weights"), ("dx",), _shaped),
    "ConvGradWeights": Operator(("dy", "x"), ("dweights", "dbias"), _weights),
    "DropoutTraining": Operator(("x", "state"), ("y", "mask"), _dropped, _DY_OVER),
    "EluGrad": _OF_X,
    "ErfGrad": _OF_X,
    "GRUGrad": _CELL,
    "GatherElementsGrad": Operator(("dy", "indices"), ("dx",), _shaped),
    "GatherGrad": Operator(("dy", "indices"), ("dx",), _shaped),
    "GeluGrad": _OF_X,
    "HardSigmoidGrad": _OF_X,
    "HardSwishGrad": _OF_X,
    "LayerNormalizationGrad": Operator(
        ("dy", "x", "scale", "mean", "inverse_deviation"), ("dx", "dscale", "dbias"),
        _like(0, 2, 2), _DY_OVER,
    ),
    "LSTMGrad": _CELL,
    "LeakyReluGrad": _OF_X,
    "LogSoftmaxGrad": _ROWS,
    "MaxPoolGrad": Operator(("dy", "x"), ("dx",), _like(1)),
    "MomentumUpdate": Operator(
        ("weight", "gradient", "velocity", "rate?", "scale?"), ("weight", "velocity"),
        _like(0, 2), ((0, 0), (1, 2)),
    ),
    "NegativeLogLikelihoodLossGrad": Operator(("dy", *_LOSS), ("dscores",), _shaped),
    "RNNGrad": _CELL,
    "ReluGrad": _OF_Y,
    "RunningUpdate": Operator(("running", "batch"), ("running",), _like(0), _BOTH_OVER),
    "SgdUpdate": Operator(
        ("weight", "gradient", "rate?", "scale?"), ("weight",), _like(0), _DY_OVER
    ),
    "SigmoidGrad": _OF_Y,
    "SliceGrad": Operator(("dy", "starts", "ends", "axes", "steps"), ("dx",), _shaped),
    "SoftmaxCrossEntropyLossGrad": Operator(
        ("dy", "log_probabilities", *_LOSS), ("dscores",), _like(1), ((0, 1),)
    ),
    "SoftmaxGrad": _ROWS,
    "SoftplusGrad": _OF_X,
    "SquaresAdded": Operator(("gradient", "total?"), ("total",), _scalars(DType.FLOAT64)),
    "SwishGrad": _OF_X,
    "TanhGrad": _OF_Y,
    "TransposedMatMul": Operator(("a", "b"), ("y",), _product),
}  # fmt: skip
"""Operators by name; `Layer` and `LayerGrad` take their signatures from callables."""
