"""Values of Constant nodes."""

from collections.abc import Mapping

import numpy as np
from onnx import NodeProto

from tightship.errors import GraphError
from tightship.frontend.onnx.schema import label
from tightship.graph import AttributeValue, Constant, Graph, Inline, Layer

_DTYPES = {
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_string": object,
    "value_strings": object,
}


def constant_value(node: NodeProto, attributes: Mapping[str, AttributeValue]) -> Constant:
    """Return the constant of a Constant node.

    Raises:
        GraphError: It does not have exactly one value and one output.
    """
    if len(attributes) != 1 or len(node.output) != 1 or not node.output[0] or node.input:
        raise GraphError(
            f"Node {label(node)} has {len(attributes)} attributes, {len(node.input)} inputs and "
            f"{len(node.output)} outputs; a constant has one attribute and one output."
        )
    ((name, value),) = attributes.items()
    if name in ("value", "sparse_value"):
        if isinstance(value, (str, bytes, int, float, tuple, Graph, Layer)):
            raise GraphError(f"Attribute `{name}` of node {label(node)} must be a tensor.")
        return value
    plain = isinstance(value, tuple) if name.endswith("s") else not isinstance(value, tuple)
    if name not in _DTYPES or not plain:
        raise GraphError(
            f"Node {label(node)} has a bad or unknown attribute `{name}`; it must be `value`, "
            f"`sparse_value` or one of {', '.join(f'`{each}`' for each in _DTYPES)}."
        )
    array = np.empty(len(value) if isinstance(value, tuple) else (), _DTYPES[name])
    try:
        array[...] = value
    except (TypeError, ValueError) as error:
        raise GraphError(f"Node {label(node)} has a bad attribute `{name}`: {error}.") from None
    array.flags.writeable = False
    return Inline(array)
