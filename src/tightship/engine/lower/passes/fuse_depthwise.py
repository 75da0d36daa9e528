"""Fuses a depthwise convolution and the Swish around it into one operator.

The library takes two to three times as long as our kernel for a Swish, which our kernel computes
before the convolution as it reads, and after it before it writes. Without a Swish the library is
faster. If the whole image is averaged next, as in squeeze-and-excite, the operator also writes the
mean of each row, and only these are averaged.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from tightship.engine.lower.passes.fuse import HEADS
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.engine.lower.passes.walk import Walk
from tightship.engine.lower.passes.widened import Widened
from tightship.graph import Constant, DType, Fill, Graph, Node, Value

KERNEL_ROWS_MAX = 32
"""Most rows of a window that the kernel supports."""
INFINITY = float("inf")
LIMITS = (("min", -INFINITY), ("max", INFINITY))
"""Limits of a Clip: attribute names, and defaults."""


def fuse_depthwise(graph: Graph) -> Graph:
    """Replace depthwise convolutions of images, with a Swish before or after, by `DepthwiseConv`.

    Its inputs are the image, weights and bias, its outputs the result and, if the image is
    averaged, the mean of each row, `[N, C, H, 1]`. Attributes besides the convolution's: `before`
    and `after`, `Swish` or empty, and `low` and `high`, which results are clamped to.
    """
    walk = Walk.over(graph)
    changed: dict[str, Node] = {}
    constants: dict[str, Constant] = {}
    values: dict[str, Value] = {}
    for node in graph.nodes:
        after = after_of(walk, node) if _is_depthwise(walk, node) else None
        if after is None:
            continue
        before = _before(walk, node, changed)
        if before is None and not after["after"]:
            continue
        depthwise = joined(walk, node, after, constants)
        if before is not None:
            source, function = replace(before, fused=before.fused[:-1]), before.fused[-1]
            changed[before.name] = source
            depthwise = replace(
                depthwise,
                inputs=(function.inputs[0], *depthwise.inputs[1:]),
                attributes={**depthwise.attributes, "before": function.operator},
            )
        changed[node.name] = _with_means(walk, depthwise, changed, values)
    nodes = [changed.get(node.name, node) for node in graph.nodes]
    return rebuilt(graph, nodes, constants=constants, values=values)


def _is_depthwise(walk: Walk, node: Node) -> bool:
    """Whether the kernel that computes a Swish covers a convolution."""
    if not convolves_channels(walk, node) or len(node.fused) > 1:
        return False
    weights = walk.graph.constants[node.inputs[1]].shape
    has_one_result = weights[0] == node.integer("group", 1)
    return len(weights) == 4 and weights[2] <= KERNEL_ROWS_MAX and has_one_result


def convolves_channels(walk: Walk, node: Node) -> bool:
    """Whether each channel of a float32 image is convolved separately, with constant weights."""
    if node.operator != "Conv" or node.domain:
        return False
    weights = walk.graph.constants.get(node.inputs[1])
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if weights is None or isinstance(weights, Widened):
        return False
    source, target = (walk.graph.value(name) for name in (node.inputs[0], node.outputs[0]))
    pads = node.attributes.get("pads", ())
    assert isinstance(pads, tuple)
    return (
        (not bias or bias in walk.graph.constants)
        and not walk.is_of_integers(node)
        and all(value.is_static and value.dtype is DType.FLOAT32 for value in (source, target))
        and 0 not in (*source.static_shape, *target.static_shape)
        and node.integer("group", 1) == source.static_shape[1]
        and weights.shape[1] == 1
        and all(int(pad) >= 0 for pad in pads)
    )


def after_of(walk: Walk, node: Node) -> dict[str, str | float] | None:
    """Describe what follows a convolution as attributes; None if it is more than an activation."""
    open_ended: dict[str, str | float] = {
        "before": "",
        "after": "",
        "low": -INFINITY,
        "high": INFINITY,
    }
    if not node.fused:
        return open_ended
    (last,) = node.fused
    if last.domain or last.inputs[0] != node.outputs[0]:
        return None
    if last.operator == "Relu":
        return {**open_ended, "low": 0.0}
    if _is_swish(last):
        return {**open_ended, "after": last.operator}
    limits = _limits(walk, last) if last.operator == "Clip" else None
    return None if limits is None else {**open_ended, "low": limits[0], "high": limits[1]}


def _is_swish(node: Node) -> bool:
    """Whether a node is `x / (1 + e^-x)`."""
    return node.operator == "Swish" and not node.domain and node.attributes.get("alpha", 1.0) == 1.0


def _limits(walk: Walk, clip: Node) -> tuple[float, float] | None:
    """Return the limits of a Clip, if they are constant."""
    if clip.version < 11:
        given = [clip.attributes.get(name, edge) for name, edge in LIMITS]
    else:
        given = []
        names = (*clip.inputs[1:], "", "")
        for name, (_, edge) in zip(names, LIMITS, strict=False):
            constant = walk.graph.constants.get(name)
            if name and constant is None:
                return None
            given.append(edge if constant is None else float(constant.array().reshape(())))
    low, high = given
    assert isinstance(low, float)
    assert isinstance(high, float)
    return (low, high) if low <= high else None


def joined(
    walk: Walk, node: Node, after: Mapping[str, str | float], constants: dict[str, Constant]
) -> Node:
    """Make the operator, without what comes before and after it."""
    bias = node.inputs[2] if len(node.inputs) > 2 else ""
    if not bias:
        bias = f"{node.name}.no_bias"
        channels = walk.graph.constants[node.inputs[1]].shape[0]
        constants[bias] = Fill(np.zeros((), np.float32), (channels,))
    return replace(
        node, operator="DepthwiseConv", domain="tightship", fused=(), outputs=node.writes,
        inputs=(*node.inputs[:2], bias), attributes={**node.attributes, **after},
    )  # fmt: skip


def _before(walk: Walk, node: Node, changed: Mapping[str, Node]) -> Node | None:
    """Return the kernel whose last fused node is a Swish that only this convolution reads."""
    name = node.inputs[0]
    maker = walk.makers.get(name)
    if maker is None or maker.name in changed or not maker.fused:
        return None
    alone = walk.sole_reader(name) is not None
    return maker if _is_swish(maker.fused[-1]) and alone and maker.operator in HEADS else None


def _with_means(walk: Walk, node: Node, changed: dict[str, Node], values: dict[str, Value]) -> Node:
    """Add the means of rows as an output, for all nodes that average the result."""
    name = node.outputs[0]
    poolings = [
        reader
        for reader in map(walk.graph.nodes.__getitem__, walk.graph.reads.get(name, ()))
        if reader.operator == "GlobalAveragePool" and not reader.domain
    ]
    if not poolings:
        return node
    means = f"{name}.means"
    batch, channels, height, _ = walk.graph.value(name).static_shape
    values[means] = Value(means, DType.FLOAT32, (batch, channels, height, 1))
    changed.update({pool.name: replace(pool, inputs=(means,)) for pool in poolings})
    return replace(node, outputs=(name, means))
