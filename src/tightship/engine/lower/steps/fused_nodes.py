"""Activations and biases fused into the node before them, as arguments of kernels."""

from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node
from tightship.graph.operators import row_of

INFINITY = 3.4028234663852886e38


def eltwise_of(builder: Builder, node: Node) -> tuple[str, float, float] | None:
    """Return algorithm, alpha and beta of an activation; None if no algorithm computes it."""
    if node.domain:
        return None
    if node.operator == "Clip":
        return _clip(builder, node)
    if node.operator == "Gelu" and node.attributes.get("approximate") == "tanh":
        return "gelu_tanh", 0.0, 0.0
    found = row_of(node).eltwise
    if found is None:
        return None
    return found.algorithm, node.number("alpha", found.alpha), node.number("beta", found.beta)


def _clip(builder: Builder, node: Node) -> tuple[str, float, float] | None:
    if node.version < 11:
        return "clip", node.number("min", -INFINITY), node.number("max", INFINITY)
    bounds = []
    for index, default in ((1, -INFINITY), (2, INFINITY)):
        name = node.inputs[index] if len(node.inputs) > index else ""
        constant = builder.constant(name) if name else None
        if name and constant is None:
            return None
        bounds.append(default if constant is None else float(constant.array().reshape(())))
    return ("clip", bounds[0], bounds[1]) if bounds[0] <= bounds[1] else None


def take_bias(builder: Builder, node: Node, columns: int) -> tuple[Node, str]:
    """Take the first fused node as the bias if it adds a constant row.

    Returns:
        The node without the addition and the name of the bias; an empty name if there is none.
    """
    if node.fused and node.fused[0].operator == "Add":
        first, name = node.fused[0], node.outputs[0]
        other = first.inputs[1 if first.inputs[0] == name else 0]
        constant = builder.constant(other)
        if constant is not None and constant.shape == (columns,):
            return node.absorbed(), other
    return node, ""
