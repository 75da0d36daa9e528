"""Removes nodes that return their operand, and nodes that repeat an earlier one."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Graph, Node
from tightship.graph.ir import AttributeValue

REPEATABLE = frozenset(
    {"Transpose", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Cast", "Slice", "Gather", "Expand",
     "Concat", "Add", "Sub", "Mul", "Div", "Neg", "Sqrt", "Reciprocal", "Pow", "Erf", "Tanh",
     "Sigmoid", "Softplus", "Exp", "ReduceMean", "Equal", "Greater", "Less", "Not", "And", "Where",
     "Cos", "Sin"}
)  # fmt: skip
"""Operators that are merged if operands and attributes are equal."""


def common_subexpressions(graph: Graph) -> Graph:
    """Remove nodes that change nothing, and common subexpressions.

    A node that names a graph output, or a value that a subgraph captures, stays.
    """
    captured = {name for node in graph.nodes for body in node.subgraphs for name in body.captures}
    fixed = {*graph.outputs, *captured}
    names: dict[str, str] = {}
    done: dict[object, Node] = {}
    nodes: list[Node] = []
    for original in graph.nodes:
        node = original
        if not names.keys().isdisjoint(original.inputs):
            node = replace(original, inputs=tuple(names.get(n, n) for n in original.inputs))
        if len(node.outputs) != 1 or node.outputs[0] in fixed or node.domain or node.fused:
            nodes.append(node)
        elif _changes_nothing(graph, node):
            names[node.outputs[0]] = node.inputs[0]
        elif (key := _key(node)) is not None and key in done:
            names[node.outputs[0]] = done[key].outputs[0]
        else:
            nodes.append(node)
            if key is not None:
                done[key] = node
    return rebuilt(graph, nodes) if names else graph


def _changes_nothing(graph: Graph, node: Node) -> bool:
    check = UNCHANGING.get(node.operator)
    return check is not None and check(graph, node)


def _keeps_order(_: Graph, node: Node) -> bool:
    permutation = node.attributes.get("perm")
    return isinstance(permutation, tuple) and permutation == tuple(range(len(permutation)))


def _drops_nothing(_: Graph, node: Node) -> bool:
    """Whether a Dropout is in inference mode."""
    return node.version >= 7 and len([name for name in node.inputs if name]) < 3


def _is_of_one(_: Graph, node: Node) -> bool:
    return len(node.inputs) == 1


def _keeps_type(graph: Graph, node: Node) -> bool:
    before, after = graph.value(node.inputs[0]), graph.value(node.outputs[0])
    same = (before.dtype, before.shape) == (after.dtype, after.shape)
    return before.is_static and same


def _is_forward(graph: Graph, node: Node) -> bool:
    """Whether a slice of unchanged shape takes elements in order, and so takes all of them."""
    if not _keeps_type(graph, node):
        return False
    if len(node.inputs) < 5 or not node.inputs[4]:
        return True
    steps = graph.constant(node.inputs[4])
    return steps is not None and all(step > 0 for step in steps.array().reshape(-1).tolist())


def _is_empty(graph: Graph, node: Node) -> bool:
    """Whether a Pad neither adds nor removes anything."""
    if not _keeps_type(graph, node):
        return False
    pads = node.attributes.get("pads")
    if len(node.inputs) > 1:
        constant = graph.constant(node.inputs[1])
        pads = None if constant is None else tuple(constant.array().reshape(-1).tolist())
    return isinstance(pads, tuple) and not any(pads)


def _key(node: Node) -> object | None:
    """Return a key that is equal for equal nodes; None for nodes that are not compared."""
    if node.operator not in REPEATABLE or node.subgraphs:
        return None
    attributes = _plain(node.attributes)
    return None if attributes is None else (node.operator, node.version, node.inputs, attributes)


def _plain(attributes: Mapping[str, AttributeValue]) -> tuple[object, ...] | None:
    values = tuple(sorted(attributes.items(), key=lambda item: item[0]))
    plain = all(isinstance(value, (int, float, str, bytes, tuple)) for _, value in values)
    return values if plain else None


UNCHANGING: Mapping[str, Callable[[Graph, Node], bool]] = {
    **dict.fromkeys(
        ("Identity", "Cast", "CastLike", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand",
         "Tile"),
        _keeps_type,
    ),
    **dict.fromkeys(("Concat", "Sum", "Max", "Min", "Mean"), _is_of_one),
    "Transpose": _keeps_order,
    "Dropout": _drops_nothing,
    "Slice": _is_forward,
    "Pad": _is_empty,
}  # fmt: skip
"""Conditions by operator under which a node changes nothing."""
