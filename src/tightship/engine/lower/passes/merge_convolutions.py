"""Merges convolutions of the same image that are added, by adding their weights.

Networks trained with several branches a layer, as RepVGG and MobileOne, are exported with them. A
smaller kernel is placed where its elements are in the largest one, a normalization of the image, or
the image itself, is a kernel of one element for each channel.
"""

from dataclasses import dataclass, replace

import numpy as np

from tightship.engine.lower.passes.affine import (
    Affine,
    Vector,
    flat,
    identity,
    normalization,
    vector,
)
from tightship.engine.lower.passes.blocks import BlockWeights
from tightship.engine.lower.passes.dequantized import Dequantized
from tightship.engine.lower.passes.fold_batch_norm import epsilon_of, is_inference_norm
from tightship.engine.lower.passes.rewrite import GraphWriter
from tightship.engine.lower.passes.walk import Walk
from tightship.engine.lower.passes.widened import Widened
from tightship.graph import Constant, Derived, DType, Graph, Node, element_count
from tightship.graph.constant import Array

SUMS = ("Add", "Sum")
ENCODED = (BlockWeights, Dequantized, Widened)
"""Constants that kernels read as they are stored."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Weights, or an affine map of the channels, and the first element's place in the largest."""

    start: tuple[int, ...]
    weights: Constant | None
    affine: Affine


def merge_convolutions(graph: Graph) -> Graph:
    """Replace sums of convolutions of one image by one convolution and what else they add."""
    walk = Walk.over(graph)
    inner = {name for node in graph.nodes if _is_sum(walk, node) for name in node.inputs}
    writer = GraphWriter(graph)
    for node in graph.nodes:
        name = node.outputs[0] if node.outputs else ""
        is_root = not (name in inner and walk.counts.get(name) == 1)
        if not _is_sum(walk, node) or not is_root or not _merge(walk, writer, node):
            writer.nodes.append(node)
    return writer.written()


def _merge(walk: Walk, writer: GraphWriter, root: Node) -> bool:
    """Write a sum anew if some of its terms merge."""
    rest = _terms(walk, root)
    merged: list[Node] = []
    while (found := _group(walk, rest)) is not None:
        node, kernels, names = found
        rest = [name for name in rest if name not in names]
        merged.append(_written(walk, writer, node, kernels))
    if not merged:
        return False
    shape = walk.graph.value(root.outputs[0]).shape
    if len(merged) == 1 and not rest:
        writer.nodes.append(replace(merged[0], outputs=root.outputs))
        return True
    for node in merged:
        result = writer.declare(f"{node.outputs[0]}.merged", shape)
        writer.nodes.append(replace(node, outputs=(result,)))
        rest.append(result)
    total = rest[0]
    for index, name in enumerate(rest[1:], 2):
        is_last = index == len(rest)
        result = root.outputs[0] if is_last else f"{root.outputs[0]}.sum{index}"
        if not is_last:
            writer.declare(result, shape)
        total = writer.add("Add", (total, name), result, name=root.name if is_last else "")
    return True


def _terms(walk: Walk, node: Node) -> list[str]:
    """List what a sum adds; a sum that only it reads is one with it."""
    found, left = list[str](), [*reversed(node.inputs)]
    while left:
        name = left.pop()
        maker = walk.makers.get(name)
        if maker is not None and walk.counts[name] == 1 and _is_sum(walk, maker):
            left += reversed(maker.inputs)
        else:
            found.append(name)
    return found


def _is_sum(walk: Walk, node: Node) -> bool:
    """Whether a node adds float32 images of one known shape."""
    if node.operator not in SUMS or node.domain or node.fused:
        return False
    values = [walk.graph.value(name) for name in (*node.inputs, *node.outputs)]
    return all(
        value.is_static and value.dtype is DType.FLOAT32 and value.shape == values[-1].shape
        for value in values
    )


def _convolution(walk: Walk, name: str) -> Node | None:
    """Return the Conv by constants that alone makes a term, else None."""
    node = walk.makers.get(name)
    if node is None or node.operator != "Conv" or node.domain or walk.counts[name] > 1:
        return None
    constants = [walk.graph.constants.get(each) for each in node.inputs[1:] if each]
    known = [each for each in constants if each is not None and not _is_encoded(each)]
    pads = node.attributes.get("pads", ())
    assert isinstance(pads, tuple), node
    has_pads = node.attributes.get("auto_pad", "NOTSET") == "NOTSET"
    if len(known) < len(constants) or not has_pads or any(int(pad) < 0 for pad in pads):
        return None
    return node


def _group(walk: Walk, terms: list[str]) -> tuple[Node, list[_Kernel], set[str]] | None:
    """Find terms that merge: the convolution of the largest kernel, kernels, and names of all.

    A convolution does not merge with the image alone: its kernel adds the image while it writes
    the result, which takes no further step.
    """
    found = [(name, node) for name in terms if (node := _convolution(walk, name)) is not None]

    def taps(named: tuple[str, Node]) -> int:
        return element_count(walk.graph.constants[named[1].inputs[1]].shape[2:])

    for _, largest in sorted(found, key=taps, reverse=True):
        kernels = {
            other: kernel
            for other in terms
            if terms.count(other) == 1 and (kernel := _placed(walk, largest, other)) is not None
        }
        computed = len(kernels) - (largest.inputs[0] in kernels)
        if computed > 1 and largest.outputs[0] in kernels:
            return largest, list(kernels.values()), set(kernels)
    return None


def _placed(walk: Walk, largest: Node, name: str) -> _Kernel | None:
    """Place a term's kernel in the largest one; None if it does not fit there."""
    kernel = walk.graph.constants[largest.inputs[1]].shape[2:]
    node = _convolution(walk, name)
    if node is None:
        affine, weights = _of_channels(walk, largest, name), None
        own_begin, size = (0,) * len(kernel), (1,) * len(kernel)
    else:
        affine, weights = _bias(walk, largest, node), walk.graph.constants[node.inputs[1]]
        own_begin, size = _window(node, len(kernel))[0], weights.shape[2:]
    if affine is None:
        return None
    begin, _, dilations = _window(largest, len(kernel))
    start = list[int]()
    for axis, dilation in enumerate(dilations):
        first, rest = divmod(begin[axis] - own_begin[axis], dilation)
        if rest or not 0 <= first <= kernel[axis] - size[axis]:
            return None
        start.append(first)
    return _Kernel(tuple(start), weights, affine)


def _bias(walk: Walk, largest: Node, node: Node) -> Affine | None:
    """Return the shift by a convolution; None if its elements are not among the largest one's."""
    constants = walk.graph.constants
    ours, own = (constants[each.inputs[1]].shape for each in (largest, node))
    rank = len(ours) - 2
    _, steps, dilations = _window(largest, rank)
    _, own_steps, own_dilations = _window(node, rank)
    spread = zip(own[2:], own_dilations, dilations, strict=True)
    if (
        node.inputs[0] != largest.inputs[0]
        or own[:2] != ours[:2]
        or own_steps != steps
        or node.integer("group", 1) != largest.integer("group", 1)
        or any(length > 1 and mine != other for length, mine, other in spread)
    ):
        return None
    bias = constants[node.inputs[2]] if len(node.inputs) > 2 and node.inputs[2] else None
    return identity(own[0]) if bias is None else identity(own[0]).then_shifted(bias)


def _of_channels(walk: Walk, largest: Node, name: str) -> Affine | None:
    """Return the map of the image's channels that a term is; None if it is something else."""
    source, maker = largest.inputs[0], walk.makers.get(name)
    shapes = [walk.graph.value(each).shape for each in (source, name)]
    weights = walk.graph.constants[largest.inputs[1]].shape
    if shapes[0] != shapes[1] or max(_window(largest, len(weights) - 2)[1]) > 1:
        return None
    if name == source:
        return identity(weights[0])
    if maker is None or maker.inputs[:1] != (source,) or walk.counts[name] > 1:
        return None
    return _normalization(walk, maker)


def _normalization(walk: Walk, node: Node) -> Affine | None:
    """Return the scale and shift of a normalization by constants."""
    if not is_inference_norm(node) or node.fused:
        return None
    given = [walk.graph.constants.get(name) for name in node.inputs[1:]]
    known = [each for each in given if each is not None]
    if len(known) < len(given):
        return None
    scale, shift, mean, variance = known
    return normalization(scale, shift, mean, variance, epsilon_of(node))


def _window(node: Node, rank: int) -> tuple[tuple[int, ...], ...]:
    """Return padding before, strides and dilations."""
    found = list[tuple[int, ...]]()
    for name, absent in (("pads", 0), ("strides", 1), ("dilations", 1)):
        values = node.attributes.get(name, (absent,) * rank)
        assert isinstance(values, tuple), node
        found.append(tuple(int(each) for each in values[:rank]))
    return tuple(found)


def _is_encoded(constant: Constant) -> bool:
    return isinstance(constant, ENCODED) or constant.dtype is not DType.FLOAT32


def _written(walk: Walk, writer: GraphWriter, node: Node, kernels: list[_Kernel]) -> Node:
    """Return the convolution by the sum of the kernels; adds the constants."""
    shape = walk.graph.constants[node.inputs[1]].shape
    sources = [
        constant
        for each in kernels
        for constant in ((each.affine.scale, each.affine.shift) if each.weights is None
                         else (each.weights, each.affine.shift))
    ]  # fmt: skip
    places = tuple((each.start, each.weights and each.weights.shape) for each in kernels)
    group = node.integer("group", 1)

    def weights() -> Array:
        total = np.zeros(shape, np.float32)
        for each in kernels:
            _add(total, each)
        return total

    def bias() -> Vector:
        total = np.zeros(shape[0], np.float32)
        for each in kernels:
            total += flat(each.affine.shift)
        return total

    names = f"{node.name}.merged_weight", f"{node.name}.merged_bias"
    writer.constants[names[0]] = Derived(
        DType.FLOAT32, shape, weights, tuple(sources), ("merged", shape, group, places)
    )
    writer.constants[names[1]] = vector(shape[0], bias, *sources, recipe=("merged", places))
    return replace(node, inputs=(node.inputs[0], *names))


def _add(total: Vector, kernel: _Kernel) -> None:
    """Add a kernel to weights, [outputs, channels / group, ...]."""
    outputs, channels = total.shape[:2]
    if kernel.weights is not None:
        each = np.asarray(kernel.weights.array(), np.float32)
        ends = zip(kernel.start, each.shape[2:], strict=True)
        total[:, :, *(slice(first, first + count) for first, count in ends)] += each
        return
    rows = np.arange(outputs)
    total[rows, rows % channels, *kernel.start] += flat(kernel.affine.scale)
