"""Emits gradients of activations, in the layout that the forward pass left its value in."""

from tightship._core import Attributes, PrimitiveDesc
from tightship.engine.lower.onednn.choose import first_fast
from tightship.engine.lower.onednn.gradient import DIFF_DST, DIFF_SRC, gradient_step
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.graph import Node
from tightship.graph.operators import row_of


def activation_gradient(builder: Builder, node: Node) -> None:
    """Emit one primitive, which may overwrite either operand."""
    algorithm, alpha, beta = _algorithm(node)
    layout, desc = first_fast(
        builder.candidate_layouts(builder.home(node.inputs[1])),
        lambda layout: PrimitiveDesc.eltwise_gradient(
            algorithm, layout, layout, (alpha, beta), Attributes()
        ),
    )
    gradient, value = (builder.in_layout(name, layout) for name in node.inputs)
    target = builder.output(node.outputs[0], layout)
    argument = DST if algorithm.endswith("_of_output") else SRC
    reads = [(DIFF_DST, gradient), (argument, value)]
    in_place = [(target, gradient), (target, value)]
    gradient_step(builder, node, desc, reads, [(DIFF_SRC, target)], in_place)


def _algorithm(node: Node) -> tuple[str, float, float]:
    found = row_of(node).eltwise
    assert found is not None, node.operator
    name = found.algorithm
    if name == "gelu_erf" and node.attributes.get("approximate") == "tanh":
        name = "gelu_tanh"
    first, second = node.number("alpha", found.alpha), node.number("beta", found.beta)
    return name, first, second
