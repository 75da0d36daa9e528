"""Emits gradients of activations, in the layout that the forward pass left its value in."""

from collections.abc import Mapping

from tightship._core import Attributes, PrimitiveDesc
from tightship.engine.lower.onednn.choose import fast
from tightship.engine.lower.onednn.gradient import DIFF_DST, DIFF_SRC, gradient_step
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.graph import Node
from tightship.graph.layer import TRAINING

_Algorithm = tuple[str, str, float, str, float]
"""Name, then the attributes for alpha and beta, each with its default."""

ALGORITHMS: Mapping[str, _Algorithm] = {
    "EluGrad": ("elu", "alpha", 1.0, "", 0.0),
    "GeluGrad": ("gelu_erf", "", 0.0, "", 0.0),
    "HardSigmoidGrad": ("hardsigmoid", "alpha", 0.2, "beta", 0.5),
    "HardSwishGrad": ("hardswish", "", 1 / 6, "", 0.5),
    "LeakyReluGrad": ("relu", "alpha", 0.01, "", 0.0),
    "ReluGrad": ("relu_of_output", "", 0.0, "", 0.0),
    "SigmoidGrad": ("logistic_of_output", "", 0.0, "", 0.0),
    "SoftplusGrad": ("soft_relu", "", 1.0, "", 0.0),
    "SwishGrad": ("swish", "alpha", 1.0, "", 0.0),
    "TanhGrad": ("tanh_of_output", "", 0.0, "", 0.0),
}


def activation_gradient(builder: Builder, node: Node) -> bool:
    """Emit one primitive, which may overwrite either operand."""
    algorithm, alpha, beta = _algorithm(node)
    for layout in builder.candidate_layouts(builder.home(node.inputs[1])):
        desc = fast(
            lambda layout=layout: PrimitiveDesc.eltwise_gradient(  # type: ignore[misc]
                algorithm, layout, layout, (alpha, beta), Attributes()
            )
        )
        if desc is not None:
            gradient, value = (builder.in_layout(name, layout) for name in node.inputs)
            target = builder.output(node.outputs[0], layout)
            argument = DST if algorithm.endswith("_of_output") else SRC
            reads = [(DIFF_DST, gradient), (argument, value)]
            in_place = [(target, gradient), (target, value)]
            gradient_step(builder, node, desc, reads, [(DIFF_SRC, target)], in_place)
            return True
    return False


def _algorithm(node: Node) -> tuple[str, float, float]:
    name, alpha_name, alpha, beta_name, beta = ALGORITHMS[node.operator]
    if node.operator == "GeluGrad" and node.attributes.get("approximate") == "tanh":
        name = "gelu_tanh"
    numbers = node.attributes.get(alpha_name, alpha), node.attributes.get(beta_name, beta)
    first, second = numbers
    assert isinstance(first, float)
    assert isinstance(second, float)
    return name, first, second


ELEMENTWISE_GRADIENTS = {(TRAINING, operator): activation_gradient for operator in ALGORITHMS}
"""Emitters by domain and operator."""
