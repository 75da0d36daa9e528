"""Scales the weights of a 1x1 convolution instead of the channels of its image.

Squeeze-and-excite scales an image by a vector computed from it. Unless the image is small, it has
more elements than the weights that read it.
"""

from dataclasses import replace

from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.engine.lower.passes.widened import Widened
from tightship.graph import DType, Graph, Node, element_count


def scale_weights(graph: Graph) -> Graph:
    """Replace Mul and Conv by `ScaledConv` if that scales fewer elements.

    Its inputs are the image, the weights, the optional bias, and the scales; the attribute
    `product` names the scaled image, which is not computed.
    """
    counts, readers = graph.uses(), readers_of(graph)
    changed: dict[str, Node] = {}
    for node in graph.nodes:
        if node.operator != "Mul" or node.domain or node.fused:
            continue
        follower = sole_reader(counts, readers, node.outputs[0])
        if follower is None or not _is_covered(graph, node.outputs[0], follower):
            continue
        for image, scale in (node.inputs, node.inputs[::-1]):
            if _is_scaled(graph, image, scale, node.outputs[0]):
                weights, bias = (*follower.inputs[1:], "")[:2]
                changed[follower.name] = replace(
                    follower, operator="ScaledConv", domain="tightship",
                    inputs=(image, weights, bias, scale),
                    attributes={**follower.attributes, "product": node.outputs[0]},
                )  # fmt: skip
                break
    return rebuilt(graph, [changed.get(node.name, node) for node in graph.nodes])


def _is_covered(graph: Graph, name: str, node: Node) -> bool:
    """Whether a node is a 1x1 convolution of one image, with fewer weights than the image has."""
    if node.operator != "Conv" or node.domain or node.inputs[0] != name:
        return False
    weights, value = graph.constants.get(node.inputs[1]), graph.value(name)
    if weights is None or isinstance(weights, Widened) or not value.is_static:
        return False
    shape = value.static_shape
    return (
        value.dtype is DType.FLOAT32
        and len(shape) == 4
        and shape[0] == 1
        and weights.shape[1:] == (shape[1], 1, 1)
        and not any(name in each.inputs for each in node.fused)
        and weights.shape[0] < element_count(shape[2:])
    )


def _is_scaled(graph: Graph, image: str, scale: str, result: str) -> bool:
    """Whether the result is the image times one scale for each channel."""
    values = [graph.value(name) for name in (image, scale, result)]
    if not all(value.is_static and value.dtype is DType.FLOAT32 for value in values):
        return False
    shape, scales, whole = (value.static_shape for value in values)
    return shape == whole and scales == (1, shape[1], 1, 1) and image != scale
