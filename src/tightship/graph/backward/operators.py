"""The operators that gradients are written with besides ONNX's: signatures, types, in-place.

They live in the domain `DOMAIN`. Each means what its NumPy kernel computes
(`engine/kernels/gradient`); their attributes are those of the forward node, and their version is
the opset version that gives that node its meaning. `dy` is the gradient of the forward node's
first output; an output may be left out. An update with an attribute `start` is of the rows of a
weight from there on, as many as its gradient has; a `GatherGrad` with `start` and `length` is of
rows from there on, of an axis of that length, as many as `shape` says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.graph.ir import AttributeValue
from tightship.graph.layer import TRAINING
from tightship.graph.layout import DType

DOMAIN = TRAINING

Type = tuple[DType, tuple[int, ...]]
"""Of a static value."""
Attributes = Mapping[str, AttributeValue]
Infer = Callable[[Sequence[Type | None], Attributes], list[Type]]
"""Types of all outputs from those of the inputs, None where absent, and the attributes."""


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator's signature.

    Attributes:
        inputs: Their names; a question mark says that one may be absent.
        outputs: Their names.
        infer: Types of the outputs.
        in_place: Pairs (output index, input index) that may be one buffer.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    infer: Infer
    in_place: tuple[tuple[int, int], ...] = ()


def types_of(
    operator: str, inputs: Sequence[Type | None], attributes: Attributes
) -> tuple[Type, ...]:
    """Types of the outputs of an operator of `DOMAIN`."""
    return tuple(OPERATORS[operator].infer(inputs, attributes))


def _given(kind: Type | None) -> Type:
    assert kind is not None
    return kind


def _like(*places: int) -> Infer:
    """Each output has the type of an input."""
    return lambda inputs, _: [_given(inputs[place]) for place in places]


def _scalars(*dtypes: DType) -> Infer:
    """Each output is one number."""
    return lambda _, __: [(dtype, ()) for dtype in dtypes]


def _shaped(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """The first output has the shape that the node carries."""
    return [(_given(inputs[0])[0], _dimensions(attributes["shape"]))]


def _dimensions(shape: AttributeValue) -> tuple[int, ...]:
    assert isinstance(shape, tuple)
    return tuple(int(length) for length in shape)


def _weights(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """The weights' gradient, and the bias': one number a filter."""
    ((dtype, shape),) = _shaped(inputs, attributes)
    return [(dtype, shape), (dtype, shape[:1])]


def _product(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """A matrix product, either operand transposed, leading axes broadcast."""
    (dtype, a), (_, b) = (_given(value) for value in inputs)
    rows = a[-1] if attributes.get("transA") else a[-2]
    columns = b[-2] if attributes.get("transB") else b[-1]
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    return [(dtype, (*batch, rows, columns))]


def _states(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Gradients of the operands of an LSTM, a GRU or an RNN, absent ones among them."""
    x, w, r, states = (_given(inputs[place]) for place in (0, 1, 2, 6))
    dtype, (_times, directions, batch, size) = states
    state = (dtype, (directions, batch, size))
    return [x, w, r, (dtype, (directions, 2 * w[1][1])), state, state]


def _normalized(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """The result, and a mean and a variance of each channel."""
    dtype, shape = _given(inputs[0])
    return [(dtype, shape), (dtype, shape[1:2]), (dtype, shape[1:2])]


def _dropped(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """The result, and which elements were kept."""
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
"""By name. `Layer` and `LayerGrad` beside them are as their callables have it (`layer.py`)."""
