"""Finds nodes that can run in tiles: those around large values that can be split.

A value is split along its first axis of length other than 1. Every node that writes or reads it
must have an independent result for each index of that axis: elementwise nodes, softmaxes along
another axis, matrix products that do not sum over it, gradients of these and of gathers, and
updates of weights.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from tightship.graph import Graph, Node
from tightship.graph.operators import Category, row_of

_PER_ROW = frozenset({"LogSoftmax", "LogSoftmaxGrad", "Softmax", "SoftmaxGrad"})
_PER_ROW_SINCE = 13
_STACKED = frozenset({"MatMul", "TransposedMatMul"})
_FLAT = frozenset({"Gemm", "TransposedMatMul"})
"""Products that may be of two matrices; each row of the left operand is independent."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Axis along which values of one rank are split, and its length."""

    rank: int
    axis: int
    length: int


@dataclass(frozen=True, slots=True)
class CutNode:
    """Node that is split: the frame of its results, and the split axis of each input, if any."""

    frame: Frame
    inputs: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """Nodes that are split together, by index, and the bytes of the largest value between them."""

    nodes: Mapping[int, CutNode]
    largest_bytes: int

    @property
    def length(self) -> int:
        """Largest possible number of tiles."""
        return min(node.frame.length for node in self.nodes.values())


def is_update(graph: Graph, node: Node) -> bool:
    """Whether a node updates a weight and its state, or a gathered statistic, row by row."""
    if row_of(node).category is not Category.UPDATING:
        return False
    return node.operator != "RunningUpdate" or node.outputs[0] in graph.outputs


def runs_of(graph: Graph, least_bytes: int) -> list[Run]:
    """Group nodes around values of at least `least_bytes` that can be split."""
    found = _cut_values(graph, least_bytes)
    cut = {
        index: node
        for index, each in enumerate(graph.nodes)
        if not found.isdisjoint(each.reads + each.writes)
        and (node := _cut_node(graph, each, found)) is not None
    }
    nodes = graph.nodes
    groups: dict[int, list[int]] = {}
    for index, root in _roots(graph, cut, found).items():
        groups.setdefault(root, []).append(index)
    return [
        Run(
            {index: cut[index] for index in group},
            max(
                graph.value(name).size_bytes
                for index in group
                for name in found.intersection(nodes[index].reads + nodes[index].writes)
            ),
        )
        for group in groups.values()
    ]


def _cut_values(graph: Graph, least_bytes: int) -> set[str]:
    """Find the values that every node around them can split."""
    found = {
        name
        for node in graph.nodes
        for name in node.writes
        if name not in graph.known and _size_bytes(graph, name) >= max(least_bytes, 1)
    }
    found = {name for name in found - set(graph.outputs) if _frame(graph, name) is not None}
    while torn := {name for node in graph.nodes for name in _torn(graph, node, found)}:
        found -= torn
    return found


def _torn(graph: Graph, node: Node, found: Collection[str]) -> Iterator[str]:
    """Yield values that cannot be split because of this node."""
    touched = {name for name in node.reads + node.writes if name in found}
    if not touched:
        return
    cut = _cut_node(graph, node, found)
    if cut is None or _is_large(graph, node, touched):
        yield from touched
        return
    for name, axis in zip(node.inputs, cut.inputs, strict=True):
        own = _frame(graph, name) if name in touched else None
        if own is not None and axis != own.axis:
            yield name


def _is_large(graph: Graph, node: Node, touched: Collection[str]) -> bool:
    """Whether a node of a run has another value of similar size that is not split.

    For a product of two matrices or a gather, that is an operand that each tile reads; the weight
    of an update lies outside the arena.
    """
    updates = row_of(node).category is Category.UPDATING
    if updates or node.operator == "GatherGrad" or _is_flat(graph, node):
        return False
    cut_bytes = max(_size_bytes(graph, name) for name in touched)
    others = {*node.reads, *node.writes}.difference(touched)
    return any(2 * _size_bytes(graph, name) >= cut_bytes for name in others)


def _cut_node(graph: Graph, node: Node, found: Collection[str]) -> CutNode | None:
    name = next((name for name in (*node.writes, *node.reads) if name in found), "")
    frame = _frame(graph, name)
    if frame is None or node.fused or node.subgraphs or not _is_apart(graph, node, frame):
        return None
    for name in node.writes:
        shape = graph.value(name).shape
        if shape is None or len(shape) != frame.rank or shape[frame.axis] != frame.length:
            return None
    if _is_flat(graph, node):
        if len(node.reads) != 2 or any(name in graph.constants for name in node.reads):
            return None
        return CutNode(frame, (int(bool(node.attributes.get("transA"))), None))
    if node.operator == "GatherGrad":
        return CutNode(frame, (None, None))
    axes = [_axis_of(graph, name, frame) for name in node.inputs]
    return None if any(axis == -1 for axis in axes) else CutNode(frame, tuple(axes))


def _is_flat(graph: Graph, node: Node) -> bool:
    """Whether a node is a product of two matrices."""
    return node.operator in _FLAT and all(
        name and len(graph.value(name).shape or ()) == 2 for name in node.inputs[:2]
    )


def _is_apart(graph: Graph, node: Node, frame: Frame) -> bool:
    """Whether each index along the axis has an independent result."""
    if node.operator in _PER_ROW and node.version >= _PER_ROW_SINCE:
        axis = node.integer("axis", -1)
        return axis % frame.rank != frame.axis
    if is_update(graph, node) or _is_flat(graph, node):
        return frame.axis == 0
    if node.operator in _STACKED:
        return frame.axis < frame.rank - 2
    if node.operator == "GatherGrad":
        return frame.axis == node.attributes.get("axis", 0)
    is_elementwise = row_of(node).category is Category.ELEMENTWISE
    return (is_elementwise and node.operator != "Dropout") or node.operator == "RunningUpdate"


def _axis_of(graph: Graph, name: str, frame: Frame) -> int | None:
    """Return an operand's axis for the frame; None if tiles read it whole; -1 if impossible."""
    constant = graph.constant(name) if name else None
    shape = constant.shape if constant is not None else graph.value(name).shape if name else ()
    if shape is None:
        return -1
    axis = frame.axis - frame.rank + len(shape)
    if axis < 0 or shape[axis] == 1:
        return None
    return axis if shape[axis] == frame.length and constant is None else -1


def _frame(graph: Graph, name: str) -> Frame | None:
    shape = graph.value(name).static_shape if name and graph.value(name).is_static else ()
    axis = next((axis for axis, length in enumerate(shape) if length != 1), None)
    return None if axis is None else Frame(len(shape), axis, shape[axis])


def _size_bytes(graph: Graph, name: str) -> int:
    """Return the size of a computed or given value; 0 for a constant, which is not in the arena."""
    if name in graph.constants or not graph.value(name).is_static:
        return 0
    return graph.value(name).size_bytes


def _roots(graph: Graph, nodes: Collection[int], found: Collection[str]) -> dict[int, int]:
    """Map each node to a representative of those connected with it through split values."""
    parent = {index: index for index in nodes}

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    first: dict[str, int] = {}
    for index in nodes:
        for name in graph.nodes[index].reads + graph.nodes[index].writes:
            if name in found:
                parent[root(index)] = root(first.setdefault(name, index))
    return {index: root(index) for index in nodes}
