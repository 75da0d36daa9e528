"""Opaque layers in a graph, and the nodes that run their backward."""

from collections.abc import Iterator, Sequence

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.ir import Node
from tightship.graph.layer import Layer


def layer_node(name: str, layer: Layer, inputs: Sequence[str], outputs: Sequence[str]) -> Node:
    """Make a node that runs a layer; the graph gives its outputs their types."""
    return Node(name, "Layer", tuple(inputs), tuple(outputs), {"layer": layer}, DOMAIN)


def differentiate_layer(at: GradientContext) -> Iterator[tuple[int, str]]:
    """Write a node for the layer's backward; its attribute `forward` names the forward node."""
    layer = at.node.attributes["layer"]
    assert isinstance(layer, Layer)
    if layer.backward is None:
        raise at.refusal("is not known: its layer has no `backward`; give it one")
    reads = [at.x(index) for index in layer.reads_inputs]
    reads += [at.node.outputs[index] for index in layer.reads_outputs]
    types = [at.type(name) if name in at.wanted else None for name in at.node.inputs]
    gradients = at.tape.write(
        "LayerGrad",
        (*at.gradients, *reads),
        types,
        {"layer": layer, "forward": at.node.name},
        (DOMAIN, at.node.version),
    )
    yield from ((index, name) for index, name in enumerate(gradients) if name)
