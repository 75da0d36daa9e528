"""Converts nodes and graphs to ONNX messages, for `onnx.reference`."""

from collections.abc import Iterable, Mapping

from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TypeProto,
    defs,
    helper,
    numpy_helper,
)

from tightship.engine.kernels.reference_texts import hidden, hidden_operand
from tightship.errors import GraphError
from tightship.graph import Graph, Layer, Node
from tightship.graph.ir import AttributeValue


def model_of(node: Node) -> ModelProto:
    """Make a model of this one node; its inputs are what the node reads, captures included."""
    graph = GraphProto(
        name=node.name or node.operator,
        node=[node_to_proto(node)],
        input=[helper.make_empty_tensor_value_info(name) for name in node.reads],
        output=[helper.make_empty_tensor_value_info(name) for name in node.writes],
    )
    opsets = [helper.make_opsetid(domain, v) for domain, v in _opsets(node).items()]
    return helper.make_model(graph, opset_imports=opsets)


def _opsets(node: Node) -> Mapping[str, int]:
    """Return the opset versions that the node and its subgraphs use, by domain."""
    opsets = {node.domain: node.version}
    for graph in node.subgraphs:
        for inner in graph.nodes:
            for domain, version in _opsets(inner).items():
                opsets[domain] = max(version, opsets.get(domain, 1))
    return opsets


def node_to_proto(node: Node) -> NodeProto:
    """Convert a node; values that it captures stay free names."""
    attributes = [_attribute(node, name, value) for name, value in sorted(node.attributes.items())]
    return NodeProto(
        name=node.name,
        op_type=node.operator,
        domain=node.domain,
        input=node.inputs,
        output=node.outputs,
        attribute=attributes,
    )


def graph_to_proto(graph: Graph) -> GraphProto:
    """Convert a graph; constants become initializers, read into memory."""
    return GraphProto(
        name=graph.name,
        node=[node_to_proto(node) for node in graph.nodes],
        input=_infos(graph.inputs),
        output=_infos(graph.outputs),
        initializer=[
            numpy_helper.from_array(hidden_operand(constant.array()), name)
            for name, constant in graph.constants.items()
        ],
    )


def _infos(names: Iterable[str]) -> list[object]:
    return [helper.make_empty_tensor_value_info(name) for name in names]


def _attribute(node: Node, name: str, value: AttributeValue) -> AttributeProto:
    if isinstance(value, Graph):
        return helper.make_attribute(name, graph_to_proto(value))
    if isinstance(value, str):
        return helper.make_attribute(name, hidden(value))
    if isinstance(value, bytes) and _declared_type(node, name) == AttributeProto.TYPE_PROTO:
        return helper.make_attribute(name, TypeProto.FromString(value))
    if isinstance(value, (int, float, bytes)):
        return helper.make_attribute(name, value)
    if isinstance(value, tuple):
        kind = None if value else _declared_type(node, name)
        values = [hidden(each) if isinstance(each, str) else each for each in value]
        return helper.make_attribute(name, values, attr_type=kind)
    if isinstance(value, Layer):
        raise GraphError(
            f"Node `{node.name}` runs a layer of Python callables, which needs operands whose "
            "types and shapes are known."
        )
    tensor = numpy_helper.from_array(hidden_operand(value.array()))
    return helper.make_attribute("value" if name == "sparse_value" else name, tensor)


def _declared_type(node: Node, name: str) -> int:
    """Return the type of an attribute by the operator's schema, which an empty list lacks."""
    schema = defs.get_schema(node.operator, node.version, node.domain)
    return int(schema.attributes[name].type)
