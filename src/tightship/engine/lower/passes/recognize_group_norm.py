"""Recognizes group normalization that exporters write with InstanceNormalization."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tightship.engine.lower.passes.affine import flat, identity, vector
from tightship.engine.lower.passes.fold_batch_norm import epsilon_of, is_per_channel
from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import Constant, DType, Graph, Node

RANK_MIN, OPSET = 3, 21
"""Least rank of an image, and first opset with a scale and shift for each channel."""


def recognize_group_norm(graph: Graph) -> Graph:
    """Replace Reshape to groups, InstanceNormalization, Reshape back, and Mul and Add after them.

    Scales and shifts must be constant; those of groups and of channels are combined.
    """
    search = _Search(graph)
    joined: dict[str, Node] = {}
    for node in graph.nodes:
        found = search.joined(node)
        if found is not None:
            last, new = found
            joined[last.name] = new
    if not joined:
        return graph
    nodes = [joined.get(node.name, node) for node in graph.nodes]
    return rebuilt(graph, nodes, constants=search.constants)


@dataclass(slots=True)
class _Search:
    graph: Graph
    constants: dict[str, Constant] = field(default_factory=dict)
    counts: Mapping[str, int] = field(init=False)
    makers: dict[str, Node] = field(init=False)
    readers: dict[str, Node] = field(init=False)

    def __post_init__(self) -> None:
        self.counts = self.graph.uses()
        self.makers = {name: node for node in self.graph.nodes for name in node.writes}
        self.readers = readers_of(self.graph)

    def joined(self, node: Node) -> tuple[Node, Node] | None:
        """Return the last node of a pattern with an InstanceNormalization, and its replacement."""
        if node.operator != "InstanceNormalization" or node.domain or node.fused:
            return None
        apart, back = self.makers.get(node.inputs[0]), self._reader(node)
        if not _is_reshape(apart) or not _is_reshape(back) or apart is None or back is None:
            return None
        names = (apart.inputs[0], apart.outputs[0], back.outputs[0])
        x, grouped, after = (self.graph.value(name) for name in names)
        scale, shift = (self.graph.constants.get(name) for name in node.inputs[1:3])
        if scale is None or shift is None or x.dtype is not DType.FLOAT32:
            return None
        is_static = x.is_static and grouped.is_static
        if not is_static or x.shape != after.shape or len(x.static_shape) < RANK_MIN:
            return None
        batch, channels = x.static_shape[:2]
        groups = grouped.static_shape[1]
        if grouped.static_shape[0] != batch or channels % groups:
            return None
        of_channels, last = self._affine(back, channels)
        return last, self._written(replace(node, inputs=(names[0], *node.inputs[1:])), last,
                                   (channels, groups), (scale, shift, *of_channels))  # fmt: skip

    def _reader(self, node: Node) -> Node | None:
        return sole_reader(self.counts, self.readers, node.outputs[0])

    def _affine(self, node: Node, channels: int) -> tuple[tuple[Constant, Constant], Node]:
        """Return the per-channel scale and shift after a node, and the last node of these."""
        none = identity(channels)
        scale, last = self._step(node, "Mul", channels)
        shift, last = self._step(last, "Add", channels)
        return (scale or none.scale, shift or none.shift), last

    def _step(self, node: Node, operator: str, channels: int) -> tuple[Constant | None, Node]:
        follower = self._reader(node)
        if follower is None or follower.operator != operator or follower.domain:
            return None, node
        name = node.outputs[0]
        other = follower.inputs[1 if follower.inputs[0] == name else 0]
        constant, shape = self.graph.constants.get(other), self.graph.value(name).static_shape
        if constant is None or not is_per_channel(constant.shape, len(shape), channels):
            return None, node
        return constant, follower

    def _written(
        self, node: Node, last: Node, sizes: tuple[int, int], affine: tuple[Constant, ...]
    ) -> Node:
        channels, groups = sizes
        each = channels // groups
        of_group, of_group_too, scale, shift = affine
        scales = vector(channels, lambda: flat(of_group).repeat(each) * flat(scale),
                        of_group, scale, recipe=("repeated product", each))  # fmt: skip
        shifts = vector(channels, lambda: flat(of_group_too).repeat(each) * flat(scale)
                        + flat(shift), of_group_too, scale, shift,
                        recipe=("repeated affine", each))  # fmt: skip
        names = f"{node.name}.scales", f"{node.name}.shifts"
        self.constants.update(zip(names, (scales, shifts), strict=True))
        attributes = {"num_groups": groups, "epsilon": epsilon_of(node)}
        return Node(node.name, "GroupNormalization", (node.inputs[0], *names), last.outputs,
                    attributes, version=OPSET)  # fmt: skip


def _is_reshape(node: Node | None) -> bool:
    return node is not None and node.operator == "Reshape" and not node.domain
