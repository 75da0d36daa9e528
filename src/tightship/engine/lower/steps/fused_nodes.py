"""Activations and biases fused into the node before them, as arguments of kernels."""

from tightship.engine.lower.steps.builder import Builder
from tightship.graph import Node

INFINITY = 3.4028234663852886e38
ACTIVATIONS: dict[str, tuple[str, str, float, str, float]] = {
    "Relu": ("relu", "", 0.0, "", 0.0),
    "LeakyRelu": ("relu", "alpha", 0.01, "", 0.0),
    "Sigmoid": ("logistic", "", 0.0, "", 0.0),
    "Tanh": ("tanh", "", 0.0, "", 0.0),
    "Elu": ("elu", "alpha", 1.0, "", 0.0),
    "HardSigmoid": ("hardsigmoid", "alpha", 0.2, "beta", 0.5),
    "HardSwish": ("hardswish", "", 1 / 6, "", 0.5),
    "Mish": ("mish", "", 0.0, "", 0.0),
    "Swish": ("swish", "alpha", 1.0, "", 0.0),
    "Abs": ("abs", "", 0.0, "", 0.0),
    "Sqrt": ("sqrt", "", 0.0, "", 0.0),
    "Exp": ("exp", "", 0.0, "", 0.0),
    "Neg": ("linear", "", -1.0, "", 0.0),
    "Gelu": ("gelu_erf", "", 0.0, "", 0.0),
}
"""Algorithm of each operator, the attributes that give alpha and beta, and their defaults.

Softplus and Log are missing because the library's error of 2e-6 exceeds a small result, so a
Softplus could become negative.
"""


def eltwise_of(builder: Builder, node: Node) -> tuple[str, float, float] | None:
    """Return algorithm, alpha and beta of an activation; None if no algorithm computes it."""
    if node.domain:
        return None
    if node.operator == "Clip":
        return _clip(builder, node)
    if node.operator == "Gelu" and node.attributes.get("approximate") == "tanh":
        return "gelu_tanh", 0.0, 0.0
    found = ACTIVATIONS.get(node.operator)
    if found is None:
        return None
    algorithm, alpha_name, alpha, beta_name, beta = found
    return algorithm, _number(node, alpha_name, alpha), _number(node, beta_name, beta)


def _number(node: Node, name: str, default: float) -> float:
    value = node.attributes.get(name, default)
    assert isinstance(value, float)
    return value


def _clip(builder: Builder, node: Node) -> tuple[str, float, float] | None:
    if node.version < 11:
        low, high = _number(node, "min", -INFINITY), _number(node, "max", INFINITY)
        return "clip", low, high
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
