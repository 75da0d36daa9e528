"""Operators of gradients besides ONNX's: signatures, types, in-place pairs.

They belong to the domain `DOMAIN`. Their NumPy kernels define them (`engine/kernels/gradient`).
Their attributes are those of the forward node, and their version is the opset version that defines
that node. `dy` is the gradient of the forward node's first output; an output may be left out. An
update with an attribute `start` changes the rows of a weight from there on, as many as its gradient
has; a `GatherGrad` with `start` and `length` returns rows from there on, of an axis of that length,
as many as `shape` says.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tightship.graph.layer import TRAINING
from tightship.graph.operators import Attributes, Signature, Type, rows

DOMAIN = TRAINING

OPERATORS: Mapping[str, Signature] = MappingProxyType(
    {name: row.signature for name, row in rows(DOMAIN).items() if row.signature is not None}
)
"""Operators by name; `Layer` and `LayerGrad` take their signatures from callables."""


def types_of(
    operator: str, inputs: Sequence[Type | None], attributes: Attributes
) -> tuple[Type, ...]:
    """Infer the types of the outputs of an operator of `DOMAIN`."""
    return tuple(OPERATORS[operator].infer(inputs, attributes))


__all__ = ["DOMAIN", "OPERATORS", "Attributes", "Type", "types_of"]
