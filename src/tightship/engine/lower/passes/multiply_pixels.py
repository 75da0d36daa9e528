"""Rewrites convolutions of single pixels between row-major values to products.

A convolution's kernel wants channels last, so that a lone one is between two copies. A product of
the weights, [outputs, channels], by the pixels, [channels, pixels], reads and writes these where
they are. Between other convolutions and poolings copies do not arise, and nothing is rewritten.
Convolutions of integers stay too: as real numbers they take four times as long.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from tightship.engine.lower.passes.lone_images import lone
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.engine.lower.passes.walk import Walk
from tightship.graph import Derived, DType, Graph, Node
from tightship.graph.constant import Array
from tightship.graph.operators import Category, row_of

PIXELS_MIN = 128
"""Least pixels of an image: with 49, a product takes a tenth longer than copies and convolution."""


def multiply_pixels(graph: Graph) -> Graph:
    """Replace Conv of one pixel by MatMul and Add, unless an image operator is near.

    Operators are near each other if values between them pass only through such as keep a layout.
    Where the processor multiplies tiles, or has no AVX-512, other kernels are faster, and this pass
    is left out.
    """
    walk = Walk.over(graph)
    fitting = {node.name for node in graph.nodes if _fits(walk, node)}
    if not fitting:
        return graph
    alone = lone(graph, fitting)
    writer = GraphWriter(graph)
    absorbed: set[str] = set()
    for node in graph.nodes:
        if node.name in alone:
            chain = list(_activations(walk, node))
            absorbed.update(each.name for each in chain)
            _multiply(writer, node, chain)
        elif node.name not in absorbed:
            writer.nodes.append(node)
    return writer.written() if alone else graph


def _fits(walk: Walk, node: Node) -> bool:
    """Whether a node is a Conv of single pixels, of one group, by constants."""
    graph = walk.graph
    if node.operator != "Conv" or node.domain or node.fused or walk.is_of_integers(node):
        return False
    if any(name and name not in graph.constants for name in node.inputs[1:]):
        return False
    source, result = graph.value(node.inputs[0]), graph.value(node.outputs[0])
    weights = graph.constants[node.inputs[1]].shape
    if not (source.is_static and result.is_static and source.dtype is DType.FLOAT32):
        return False
    before, after = source.static_shape, result.static_shape
    if prod(weights[2:]) != 1 or len(before) < 3 or weights[1] != before[1]:
        return False
    strides, pads = (node.attributes.get(each, ()) for each in ("strides", "pads"))
    assert isinstance(strides, tuple), node
    assert isinstance(pads, tuple), node
    is_plain = not any(pads) and all(stride == 1 for stride in strides)
    return is_plain and before[2:] == after[2:] and prod(before[2:]) >= PIXELS_MIN


def _activations(walk: Walk, node: Node) -> Iterator[Node]:
    """Return the activations that follow one another behind a node, as its kernel may apply them.

    Each is the sole reader of the one before, and all else that it reads are constant numbers.
    """
    graph = walk.graph
    while True:
        reader = walk.sole_reader(node.outputs[0])
        if reader is None or row_of(reader).category is not Category.ELEMENTWISE:
            return
        rest = [graph.constants.get(name) for name in reader.inputs[1:] if name]
        is_number = all(each is not None and prod(each.shape) == 1 for each in rest)
        if reader.inputs[0] != node.outputs[0] or not is_number or len(reader.outputs) != 1:
            return
        before, after = graph.value(node.outputs[0]), graph.value(reader.outputs[0])
        if (before.dtype, before.shape) != (after.dtype, after.shape) or reader.domain:
            return
        yield reader
        node = reader


def _multiply(writer: GraphWriter, node: Node, activations: Sequence[Node]) -> None:
    """Write a product of weights by pixels, an Add if there is a bias, and activations."""
    source, result = node.inputs[0], node.outputs[0]
    batch, channels, *image = writer.shape(source)
    outputs = writer.shape(result)[1]
    flat = (batch, channels, prod(image))
    pixels = writer.reshape(source, flat, writer.declare(f"{node.name}.pixels", flat))
    shape = (batch, outputs, prod(image))
    last = writer.declare(f"{node.name}.product", shape)
    writer.add("MatMul", (_matrix(writer, node), pixels), last, name=node.name)
    if len(node.inputs) > 2 and node.inputs[2]:
        added = writer.declare(f"{node.name}.sum", shape)
        writer.add("Add", (last, _column(writer, node.inputs[2])), added, name=f"{node.name}.bias")
        last = added
    for each in activations:
        result = each.outputs[0]
        flat_result = writer.declare(f"{result}.pixels", shape)
        writer.nodes.append(replace(each, inputs=(last, *each.inputs[1:]), outputs=(flat_result,)))
        last = flat_result
    writer.reshape(last, writer.shape(result), result)


def _matrix(writer: GraphWriter, node: Node) -> str:
    return _reshaped(writer, node.inputs[1], (1, *writer.graph.constants[node.inputs[1]].shape[:2]))


def _column(writer: GraphWriter, bias: str) -> str:
    return _reshaped(writer, bias, (1, *writer.graph.constants[bias].shape, 1))


def _reshaped(writer: GraphWriter, name: str, shape: tuple[int, ...]) -> str:
    """Return a constant of the same elements with another shape."""
    constant = writer.graph.constants[name]

    def compute() -> Array:
        return np.ascontiguousarray(constant.array().reshape(shape))

    found = f"{name}.{'x'.join(map(str, shape))}"
    writer.constants[found] = Derived(
        DType.FLOAT32, shape, compute, (constant,), ("reshaped", shape)
    )
    return found
