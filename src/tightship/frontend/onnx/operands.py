"""Operands that must fit each other, which onnx's inference does not hold together."""

from collections.abc import Mapping

from onnx import NodeProto, TypeProto, helper

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.graph import Shape
from tightship.graph.attention_shapes import attention_misfit
from tightship.graph.recurrent_shapes import DIRECTIONS, GATES, agree, recurrent_shapes

WEIGHTS_OF_STATE = 2
ATTENTION_INPUTS = 7
BROADCASTING = 7
"""The opset from which on operands are aligned at their last axis."""
SPREADING: Mapping[str, tuple[int, ...]] = {
    "Gemm": (2,), "LayerNormalization": (1, 2), "PRelu": (1,), "RMSNormalization": (1,),
}  # fmt: skip
"""Inputs that spread over the first, or over what it is a factor of."""


def misfit(
    node: NodeProto, inputs: Mapping[str, TypeProto], owner: str, version: int
) -> str | None:
    """Why the operands of a node do not fit each other; None where nothing says so.

    `version` is the opset that the operator has its meaning from.

    Raises:
        GraphError: `direction` or `layout` is none that the operator has.
    """
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in GATES:
        return _recurrent_misfit(node, inputs, owner)
    if node.op_type == "RotaryEmbedding":
        return _rotary_misfit(node, inputs)
    if node.op_type == "Attention":
        return _attention_misfit(node, inputs)
    if node.op_type in ("Conv", "ConvTranspose"):
        return _convolution_misfit(node, inputs)
    return _spread_misfit(node, inputs) if version >= BROADCASTING else None


def _convolution_misfit(node: NodeProto, inputs: Mapping[str, TypeProto]) -> str | None:
    """The window is that of the weights, and a bias has a number for each channel."""
    shapes = [_shape(inputs.get(name)) for name in node.input]
    weights = shapes[1] if len(shapes) > 1 else None
    if weights is None or len(weights) < 2:
        return None
    attributes = {each.name: each for each in node.attribute}
    window = attributes["kernel_shape"].ints if "kernel_shape" in attributes else weights[2:]
    if not agree(tuple(window), weights[2:]):
        return f"kernel_shape is {list(window)}, but `{node.input[1]}` is {_text(weights)}"
    groups = attributes["group"].i if "group" in attributes else 1
    channels = weights[0]
    if node.op_type == "ConvTranspose":
        channels = weights[1] * groups if isinstance(weights[1], int) else None
    bias = shapes[2] if len(shapes) > 2 else None
    if bias is not None and not agree(bias, (channels,)):
        return (
            f"`{node.input[2]}` has the shape {_text(bias)}, where {_text((channels,))} is needed"
        )
    return None


def _spread_misfit(node: NodeProto, inputs: Mapping[str, TypeProto]) -> str | None:
    """Parameters that spread over the input, or over the product of a Gemm, and not beyond it."""
    whole = _shape(inputs.get(node.input[0])) if node.input else None
    places = SPREADING.get(node.op_type, ())
    if whole is None or not places:
        return None
    if node.op_type == "Gemm":
        right = _shape(inputs.get(node.input[1]))
        if right is None or len(right) != 2 or len(whole) != 2:
            return None
        turned = {each.name: each.i for each in node.attribute}
        whole = whole[1 if turned.get("transA") else 0], right[0 if turned.get("transB") else 1]
    for name in [node.input[place] for place in places if place < len(node.input)]:
        found = _shape(inputs.get(name)) if name else None
        if found is None:
            continue
        over = whole[len(whole) - len(found) :] if len(found) <= len(whole) else ()
        pairs = zip(found, over, strict=False)
        if len(over) != len(found) or not all(a == 1 or agree((a,), (b,)) for a, b in pairs):
            return (
                f"`{name}` has the shape {_text(found)}, which does not spread over {_text(whole)}"
            )
    return None


def _rotary_misfit(node: NodeProto, inputs: Mapping[str, TypeProto]) -> str | None:
    """Both tables have a column for each pair that is turned, and a row for each position."""
    x, cosines, sines, positions = (
        _shape(inputs.get(name)) if name else None for name in [*node.input, ""][:4]
    )
    if x is None or cosines is None or sines is None or len(x) not in (3, 4):
        return None
    counts = {each.name: each.i for each in node.attribute}
    wide, heads = x[-1], counts.get("num_heads", 0)
    length = wide if len(x) == 4 else wide // heads if isinstance(wide, int) and heads else None
    turned = counts.get("rotary_embedding_dim", 0) or length
    half = turned // 2 if isinstance(turned, int) else None
    is_placed = positions is not None or bool([*node.input, ""][3])
    wanted = (None, half) if is_placed else (x[0], x[-2] if len(x) == 4 else x[1], half)
    for name, found in ((node.input[1], cosines), (node.input[2], sines)):
        if not agree(found, wanted) or not agree(found, cosines):
            return f"`{name}` has the shape {_text(found)}, where {_text(wanted)} is needed"
    return None


def _attention_misfit(node: NodeProto, inputs: Mapping[str, TypeProto]) -> str | None:
    counts = {each.name: each.i for each in node.attribute}
    heads = counts.get("q_num_heads"), counts.get("kv_num_heads")
    names = list(node.input[:ATTENTION_INPUTS])
    if len(names) < 3:
        return None
    return attention_misfit(names, [_shape(inputs.get(name)) for name in names], heads)


def _recurrent_misfit(node: NodeProto, inputs: Mapping[str, TypeProto], owner: str) -> str | None:
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
