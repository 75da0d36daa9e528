"""Marks lone depthwise convolutions, whose kernel of our own reads and writes row-major images.

The library's kernel wants channels last, so that a lone convolution is between two copies, which
take as long as itself.
"""

from dataclasses import replace

from tightship.engine.lower.passes.fuse_depthwise import after_of, convolves_channels, joined
from tightship.engine.lower.passes.lone_images import lone
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.engine.lower.passes.walk import Walk
from tightship.graph import Constant, Graph, Node, element_count

TILE_FLOATS = 4096
"""Floats of the tiles that the kernel cuts planes into."""
LINE = 16
"""Results of a row that are computed together; lengths in a tile are multiples of it."""
RANKS = (3, 4)
GROUP, GROUP_VECTORS = 16, 512
"""Planes that the kernel computes side by side, and how many vectors of these, of weights and of
results it has room for."""
RESULTS_MIN = 128
"""Least results of other planes: with 49, copies and the library's kernel take a fifth less."""


def convolve_planes(graph: Graph) -> Graph:
    """Replace depthwise Conv by `DepthwiseConv` with `planes`, unless an image operator is near.

    A Transpose next to it may be why the image has channels last, which suits the library. Fused
    nodes but an activation that the kernel computes follow as nodes of their own.
    """
    walk = Walk.over(graph)
    fitting = {node.name for node in graph.nodes if _fits(walk, node)}
    alone = lone(graph, fitting, beside=("Transpose",)) if fitting else frozenset[str]()
    if not alone:
        return graph
    constants: dict[str, Constant] = {}
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name not in alone:
            nodes.append(node)
            continue
        whole = replace(node, fused=node.fused[:1])
        after = after_of(walk, whole)
        if after is None:
            whole = replace(node, fused=())
            after = after_of(walk, whole)
        assert after is not None, node
        convolution = joined(walk, whole, after, constants)
        attributes = {**convolution.attributes, "planes": 1}
        nodes += (replace(convolution, attributes=attributes), *node.fused[len(whole.fused) :])
    return rebuilt(graph, nodes, constants=constants)


def _fits(walk: Walk, node: Node) -> bool:
    """Whether the kernel covers a convolution: a tile holds what some results read."""
    if not convolves_channels(walk, node):
        return False
    rank = len(walk.graph.value(node.inputs[0]).static_shape)
    if rank not in RANKS:
        return False
    target = walk.graph.value(node.outputs[0]).static_shape
    kernel = walk.graph.constants[node.inputs[1]].shape[2:]
    if element_count(target[2:]) < RESULTS_MIN and not _are_side_by_side(walk, node):
        return False
    if target[1] > node.integer("group", 1) == 1 and element_count(kernel) == max(kernel):
        return False  # one row of weights for each result: a product, which the library computes
    strides, dilations = (_pair(node, name) for name in ("strides", "dilations"))
    floats = 1
    for axis, length in enumerate(kernel):
        is_last = axis == len(kernel) - 1
        count, unit = (min(target[-1], LINE), LINE) if is_last else (1, 1)
        reached = (count - 1) * strides[axis] + (length - 1) * dilations[axis] + 1
        unit *= strides[axis]
        floats *= -(-reached // unit) * unit
    return floats <= TILE_FLOATS


def _are_side_by_side(walk: Walk, node: Node) -> bool:
    """Whether planes are so small that the kernel computes several side by side."""
    source, target = (
        walk.graph.value(name).static_shape for name in (node.inputs[0], node.outputs[0])
    )
    kernel = walk.graph.constants[node.inputs[1]].shape[2:]
    stride, dilation = (_pair(node, name)[-1] for name in ("strides", "dilations"))
    width = max(source[-1], (target[-1] - 1) * stride + (kernel[-1] - 1) * dilation + 1)
    lengths = (
        element_count(source[2:-1]) * width,
        element_count(kernel),
        element_count(target[2:]),
    )
    return target[1] == source[1] >= GROUP and sum(lengths) <= GROUP_VECTORS


def _pair(node: Node, name: str) -> tuple[int, ...]:
    """Return an attribute of an axis or two."""
    found = node.attributes.get(name, (1, 1))
    assert isinstance(found, tuple), node
    return tuple(int(each) for each in found)
