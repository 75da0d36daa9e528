"""Attributes of a node as plain values; graphs are returned apart, to be read in their scope."""

from collections.abc import Callable

from onnx import AttributeProto, GraphProto, NodeProto

from tightship.errors import GraphError
from tightship.frontend.onnx.schema import label
from tightship.frontend.onnx.tensor import Tensors
from tightship.frontend.onnx.text import utf8
from tightship.graph import AttributeValue
from tightship.graph.texts import decoded

_FIELDS = {
    "f": AttributeProto.FLOAT,
    "i": AttributeProto.INT,
    "s": AttributeProto.STRING,
    "t": AttributeProto.TENSOR,
    "g": AttributeProto.GRAPH,
    "sparse_tensor": AttributeProto.SPARSE_TENSOR,
    "tp": AttributeProto.TYPE_PROTO,
}
_LISTS = {
    "floats": AttributeProto.FLOATS,
    "ints": AttributeProto.INTS,
    "strings": AttributeProto.STRINGS,
}

_PLAIN: dict[int, Callable[[AttributeProto], AttributeValue]] = {
    AttributeProto.FLOAT: lambda attribute: attribute.f,
    AttributeProto.INT: lambda attribute: attribute.i,
    AttributeProto.STRING: lambda attribute: decoded(attribute.s),
    AttributeProto.FLOATS: lambda attribute: tuple(attribute.floats),
    AttributeProto.INTS: lambda attribute: tuple(attribute.ints),
    AttributeProto.STRINGS: lambda attribute: tuple([decoded(text) for text in attribute.strings]),
    AttributeProto.TYPE_PROTO: lambda attribute: attribute.tp.SerializeToString(),
}


def read_attributes(
    node: NodeProto, tensors: Tensors
) -> tuple[dict[str, AttributeValue], dict[str, GraphProto]]:
    """Return the attributes of a node without graphs, and its graphs.

    Raises:
        FormatError: A tensor's bytes do not fit.
        GraphError: An attribute is given twice, or has a type that no operator takes.
    """
    values: dict[str, AttributeValue] = {}
    graphs: dict[str, GraphProto] = {}
    for attribute in node.attribute:
        name = utf8(attribute.name, "attribute name")
        if name in values or name in graphs:
            raise GraphError(f"Node {label(node)} has the attribute `{name}` twice.")
        type_ = attribute.type or _type_by_field(attribute)
        if type_ in _PLAIN:
            values[name] = _PLAIN[type_](attribute)
        elif type_ == AttributeProto.GRAPH:
            graphs[name] = attribute.g
        elif type_ == AttributeProto.TENSOR:
            values[name] = tensors.constant(attribute.t, f"{name} of {node.name}")
        elif type_ == AttributeProto.SPARSE_TENSOR:
            values[name] = tensors.sparse(attribute.sparse_tensor, f"{name} of {node.name}")
        else:
            raise GraphError(
                f"Attribute `{name}` of node {label(node)} has the type {type_}, which no "
                "operator takes."
            )
    return values, graphs


def plain_attributes(node: NodeProto) -> dict[str, AttributeValue]:
    """Return the attributes of a node that are numbers, texts or lists of these."""
    typed = [(each, each.type or _type_by_field(each)) for each in node.attribute]
    return {each.name: _PLAIN[type_](each) for each, type_ in typed if type_ in _PLAIN}


def _type_by_field(attribute: AttributeProto) -> int:
    """Return the type of an attribute whose writer did not record it (IR version 1)."""
    for field, type_ in _FIELDS.items():
        if attribute.HasField(field):
            return int(type_)
    for field, type_ in _LISTS.items():
        if getattr(attribute, field):
            return int(type_)
    return int(AttributeProto.INTS)
