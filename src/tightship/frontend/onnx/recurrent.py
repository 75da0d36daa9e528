"""Operands of recurrent layers, whose lengths onnx's inference does not hold against each other."""

from collections.abc import Mapping

from onnx import NodeProto, TypeProto, helper

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.graph import Shape
from tightship.graph.recurrent_shapes import DIRECTIONS, GATES, agree, recurrent_shapes

WEIGHTS_OF_STATE = 2


def misfit(node: NodeProto, inputs: Mapping[str, TypeProto], owner: str) -> str | None:
    """Why the operands of a recurrent layer do not fit each other; None where nothing says so.

    Raises:
        GraphError: `direction`, `layout` or `hidden_size` is none that the operator has.
    """
    if node.op_type not in GATES or node.domain not in ("", "ai.onnx"):
        return None
    attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    direction = attributes.get("direction", b"forward")
    layout = attributes.get("layout", 0)
    named = direction.decode(errors="replace") if isinstance(direction, bytes) else str(direction)
    if named not in DIRECTIONS:
        raise GraphError(f"{owner} has direction={named!r}; it may be {', '.join(DIRECTIONS)}.")
    if layout not in (0, 1):
        raise GraphError(f"{owner} has layout={layout!r}; it may be 0 or 1.")
    shapes = [_shape(inputs.get(name)) for name in node.input]
    x, r = shapes[0], shapes[WEIGHTS_OF_STATE] if len(shapes) > WEIGHTS_OF_STATE else None
    if x is None or len(x) != 3 or r is None or len(r) != 3 or not isinstance(r[2], int):
        return None
    hidden = attributes.get("hidden_size", r[2])
    if hidden != r[2]:
        return f"hidden_size is {hidden}, but `{node.input[2]}` has the shape {list(r)}"
    wanted = recurrent_shapes(node.op_type, DIRECTIONS[named], x, r[2], by_batch=bool(layout))
    for name, found, shape in zip(node.input, shapes, wanted.inputs, strict=False):
        if found is not None and not agree(found, shape):
            return f"`{name}` has the shape {_text(found)}, where {_text(shape)} is needed"
    return None


def _shape(type_: TypeProto | None) -> Shape | None:
    return None if type_ is None or not types.is_tensor(type_) else types.shape_of(type_)


def _text(shape: Shape) -> str:
    return "[" + ", ".join("?" if length is None else str(length) for length in shape) + "]"
