"""Types of the operators that gradients are written with, and pairs that may be one buffer."""

from collections.abc import Sequence

import numpy as np

from tightship.graph.ir import AttributeValue
from tightship.graph.layout import DType
from tightship.graph.operators.row import Attributes, Infer, Type


def _given(kind: Type | None) -> Type:
    assert kind is not None
    return kind


def like(*places: int) -> Infer:
    """Give each output the type of an input."""
    return lambda inputs, _: [_given(inputs[place]) for place in places]


def scalars(*dtypes: DType) -> Infer:
    """Make each output one number."""
    return lambda _, __: [(dtype, ()) for dtype in dtypes]


def shaped(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """Give the first output the shape in the node's attributes."""
    return [(_given(inputs[0])[0], _dimensions(attributes["shape"]))]


def _dimensions(shape: AttributeValue) -> tuple[int, ...]:
    assert isinstance(shape, tuple)
    return tuple(int(length) for length in shape)


def weights(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """Infer the gradients of weights, and of the bias: one number for each filter."""
    ((dtype, shape),) = shaped(inputs, attributes)
    return [(dtype, shape), (dtype, shape[:1])]


def product(inputs: Sequence[Type | None], attributes: Attributes) -> list[Type]:
    """Infer a matrix product, either operand transposed, leading axes broadcast."""
    (dtype, a), (_, b) = (_given(value) for value in inputs)
    rows = a[-1] if attributes.get("transA") else a[-2]
    columns = b[-2] if attributes.get("transB") else b[-1]
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    return [(dtype, (*batch, rows, columns))]


def states(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Infer the gradients of the operands of an LSTM, a GRU or an RNN, optional ones included."""
    x, w, r, states = (_given(inputs[place]) for place in (0, 1, 2, 6))
    dtype, (_times, directions, batch, size) = states
    state = (dtype, (directions, batch, size))
    return [x, w, r, (dtype, (directions, 2 * w[1][1])), state, state]


def normalized(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Infer the result, and a mean and a variance of each channel."""
    dtype, shape = _given(inputs[0])
    return [(dtype, shape), (dtype, shape[1:2]), (dtype, shape[1:2])]


def dropped(inputs: Sequence[Type | None], _: Attributes) -> list[Type]:
    """Infer the result, and the mask of kept elements."""
    dtype, shape = _given(inputs[0])
    return [(dtype, shape), (DType.BOOL, shape)]
