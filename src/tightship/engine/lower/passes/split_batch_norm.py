"""Splits normalizations behind an activation into Mul and Add, which kernels apply as they write.

A convolution, its activation and a normalization of its channels are then one kernel, to which a
sum can be fused too. Convolutions of 3x3 keep the normalization as a step of its own, because our
kernels for them apply nothing else.
"""

from dataclasses import replace

from tightship.engine.lower.passes.affine import normalization
from tightship.engine.lower.passes.fold_batch_norm import epsilon_of, is_inference_norm
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.graph import DType, Graph, Node

OPSET = 13
SWISHES = frozenset({"HardSwish", "Swish"})


def split_batch_norm(graph: Graph) -> Graph:
    """Split every normalization that alone reads a convolution with an activation."""
    counts = graph.uses()
    makers = {node.writes[0]: node for node in graph.nodes if len(node.writes) == 1}
    writer = GraphWriter(graph)
    for node in graph.nodes:
        maker = makers.get(node.inputs[0]) if is_inference_norm(node) else None
        if maker is None or counts[node.inputs[0]] > 1 or not _gains(graph, maker, node):
            writer.nodes.append(node)
        else:
            _split(writer, node)
    return writer.written()


def _gains(graph: Graph, head: Node, norm: Node) -> bool:
    """Whether the kernel of a convolution applies the parts of a normalization faster than a step.

    Those of 3x3 by Winograd's algorithm apply no more than an activation, nor do those that
    compute a Swish.
    """
    if head.operator != "Conv" or head.domain or len(head.fused) != 1 or norm.fused:
        return False
    weights = graph.constants.get(head.inputs[1])
    if weights is None or head.fused[0].operator in SWISHES or len(head.fused[0].inputs) != 1:
        return False
    value = graph.value(norm.outputs[0])
    is_depthwise = weights.shape[1] == 1
    return (
        value.is_static
        and value.dtype is DType.FLOAT32
        and all(name in graph.constants for name in norm.inputs[1:])
        and (is_depthwise or weights.shape[2:] != (3, 3))
    )


def _split(writer: GraphWriter, node: Node) -> None:
    graph, name = writer.graph, node.outputs[0]
    scale, shift, mean, variance = (graph.constants[each] for each in node.inputs[1:])
    affine = normalization(scale, shift, mean, variance, epsilon_of(node))
    aside = (affine.channels, *[1] * (len(graph.value(name).static_shape) - 2))
    names = f"{node.name}.scale", f"{node.name}.shift"
    for each, constant in zip(names, (affine.scale, affine.shift), strict=True):
        writer.constants[each] = reshaped(constant, aside)
    product = writer.declare(f"{node.name}.scaled", graph.value(name).shape)
    plain = replace(node, operator="Mul", version=OPSET, attributes={})
    writer.nodes += [
        replace(plain, name=product, inputs=(node.inputs[0], names[0]), outputs=(product,)),
        replace(plain, operator="Add", inputs=(product, names[1])),
    ]
