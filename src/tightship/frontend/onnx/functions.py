"""Inlining of functions that a model defines."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, helper

from tightship.errors import GraphError
from tightship.frontend.onnx.schema import Opsets, label, normal_domain, read_opsets
from tightship.frontend.onnx.text import utf8

_CALLS_MAX = 64
_NODES_MAX = 250_000

FunctionKey = tuple[str, str, str]
"""Domain, name and overload."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Opsets of a node, and the depth of function calls that led to it."""

    opsets: Opsets
    depth: int = 0
    """Number of nested function calls."""


@dataclass(slots=True)
class Functions:
    """Functions of a model."""

    by_key: dict[FunctionKey, FunctionProto] = field(default_factory=dict)
    _opsets: dict[FunctionKey, Opsets] = field(default_factory=dict)
    _call_count: int = 0
    _node_count: int = 0

    def add(self, functions: Iterable[FunctionProto]) -> None:
        """Add the functions of a model.

        Raises:
            GraphError: Two have the same domain, name and overload.
        """
        for function in functions:
            key = (
                normal_domain(utf8(function.domain, "domain")),
                utf8(function.name, "function name"),
                utf8(function.overload, "overload"),
            )
            if key in self.by_key:
                raise GraphError(f"Function `{function.name}` of {key[0]!r} is defined twice.")
            self.by_key[key] = function
            self._opsets[key] = read_opsets(function.opset_import, f"Function `{function.name}`")

    def expand(
        self, nodes: Iterable[NodeProto], origin: Origin
    ) -> Iterator[tuple[NodeProto, Origin]]:
        """Yield the nodes, with each call of a function replaced by its body.

        Raises:
            GraphError: Calls are recursive or too deep, or the bodies have too many nodes.
        """
        if not self.by_key:
            for node in nodes:
                yield node, origin
            return
        for node in nodes:
            key = (normal_domain(node.domain), node.op_type, node.overload)
            function = self.by_key.get(key)
            if function is None:
                yield node, origin
                continue
            if origin.depth == _CALLS_MAX:
                raise GraphError(
                    f"Node {label(node)} calls a function that calls itself, or is nested deeper "
                    f"than {_CALLS_MAX}."
                )
            self._node_count += len(function.node)
            if self._node_count > _NODES_MAX:
                raise GraphError(f"The functions of the model have more than {_NODES_MAX} nodes.")
            self._call_count += 1
            body = _instantiate(function, node, f"{node.op_type}#{self._call_count}/")
            yield from self.expand(body, Origin(self._opsets[key], origin.depth + 1))


def _instantiate(function: FunctionProto, call: NodeProto, prefix: str) -> list[NodeProto]:
    if len(call.input) > len(function.input) or len(call.output) > len(function.output):
        raise GraphError(
            f"Node {label(call)} has {len(call.input)} inputs and {len(call.output)} outputs; "
            f"its function takes {len(function.input)} and gives {len(function.output)}."
        )
    inputs = [utf8(name, "name") for name in call.input]
    outputs = [utf8(name, "name") for name in call.output]
    names = dict.fromkeys(function.input, "")
    names.update(zip(function.input, inputs, strict=False))
    nodes = []
    for formal, actual in zip(function.output, outputs, strict=False):
        if actual and formal in names:
            nodes.append(helper.make_node("Identity", [names[formal]], [actual], prefix + actual))
        elif actual:
            names[formal] = actual
    attributes = {attribute.name: attribute for attribute in function.attribute_proto}
    attributes.update((attribute.name, attribute) for attribute in call.attribute)
    rewriting = _Rewriting(prefix, names, attributes)
    return [rewriting.node(node) for node in function.node] + nodes


@dataclass(frozen=True, slots=True)
class _Rewriting:
    prefix: str
    names: Mapping[str, str]
    attributes: Mapping[str, AttributeProto]

    def rename(self, name: str) -> str:
        """Return the outer name of a name in the body; absent stays absent."""
        if not name:
            return ""
        actual = self.names.get(name)
        return self.prefix + utf8(name, "name") if actual is None else actual

    def node(self, node: NodeProto) -> NodeProto:
        renamed = NodeProto(
            op_type=utf8(node.op_type, "operator"),
            domain=utf8(node.domain, "domain"),
            overload=utf8(node.overload, "overload"),
            name=self.prefix + utf8(node.name, "node name"),
        )
        renamed.input.extend(map(self.rename, node.input))
        renamed.output.extend(map(self.rename, node.output))
        for attribute in node.attribute:
            reference = attribute.ref_attr_name
            given = self.attributes.get(reference) if reference else None
            if reference and given is None:
                continue
            added = renamed.attribute.add()
            added.CopyFrom(given if given is not None else attribute)
            added.name = utf8(attribute.name, "attribute name")
            if given is None and attribute.HasField("g"):
                added.g.CopyFrom(self.graph(attribute.g))
        return renamed

    def graph(self, graph: GraphProto) -> GraphProto:
        renamed = GraphProto()
        renamed.CopyFrom(graph)
        del renamed.node[:]
        renamed.node.extend([self.node(node) for node in graph.node])
        _rename_all(renamed, self.rename)
        return renamed


def _rename_all(graph: GraphProto, rename: Callable[[str], str]) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = rename(value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = rename(sparse.values.name)
