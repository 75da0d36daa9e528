"""Checks of a node's operands against each other, which onnx's inference omits."""

from collections.abc import Mapping

from onnx import NodeProto, TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.attributes import plain_attributes
from tightship.graph import AttributeValue, Shape
from tightship.graph.operands import Operands
from tightship.graph.operands import misfit as operand_misfit
from tightship.graph.operators import find
from tightship.graph.recurrent_shapes import DIRECTIONS, GATES


def misfit(
    node: NodeProto, inputs: Mapping[str, TypeProto], owner: str, version: int
) -> str | None:
    """Return why the operands of a node do not fit each other; None if they may.

    `version` is the opset in which the operator got its meaning.

    Raises:
        GraphError: `direction` or `layout` has an invalid value.
    """
    if node.domain not in ("", "ai.onnx") or not find(node.op_type).operands:
        return None
    attributes = plain_attributes(node)
    if node.op_type in GATES:
        _check_recurrent(attributes, owner)
    shapes = [_shape(inputs.get(name)) for name in node.input]
    operands = Operands(tuple(node.input), shapes, attributes, version, len(node.output))
    return operand_misfit(node.op_type, operands)


def _check_recurrent(attributes: Mapping[str, AttributeValue], owner: str) -> None:
    direction, layout = attributes.get("direction", "forward"), attributes.get("layout", 0)
    if direction not in DIRECTIONS:
        raise GraphError(f"{owner} has direction={direction!r}; it may be {', '.join(DIRECTIONS)}.")
    if layout not in (0, 1):
        raise GraphError(f"{owner} has layout={layout!r}; it may be 0 or 1.")


def _shape(type_: TypeProto | None) -> Shape | None:
    return None if type_ is None or not types.is_tensor(type_) else types.shape_of(type_)
