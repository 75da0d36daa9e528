"""Lays a network out in levels: the first one, and one for what is in each block."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.view.network.blocks import Block, Item, backward_of, grouped
from tightship.view.network.layered import Layout, laid_out
from tightship.view.network.network import Network

NODES_MAX = 500
"""Most nodes of a network that is drawn without blocks."""
INNER_MAX = 160
"""Most nodes of a block that has no blocks in it."""
_PORTS_MAX = 8
"""Most values that enter or leave a block and are drawn one by one."""
_CHARACTER = 7.7
_NODE_HEIGHT, _BLOCK_HEIGHT, _PORT_HEIGHT = 38.0, 50.0, 20.0
_WIDTH_MIN, _WIDTH_MAX = 88.0, 176.0


@dataclass(frozen=True, slots=True)
class Box:
    """Box of a level: a node, a block, or a value that another block makes or reads.

    Attributes:
        label: First line.
        node: Its node, or -1 for a block or a port.
        level: Level of what is in a block, or -1.
        values: Values that it writes, or of a port, those that pass.
        is_backward: Whether it is of the backward pass.
        is_port: Whether it stands for a value of another block.
        steps: Steps of a block, in order; a node's own.
        detail: Second line: a node's value, or how many steps a block has.
    """

    label: str
    node: int = -1
    level: int = -1
    values: tuple[int, ...] = ()
    is_backward: bool = False
    is_port: bool = False
    steps: tuple[int, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Level:
    """Boxes of one level, the values on its edges, and where all of them are."""

    name: str
    boxes: tuple[Box, ...]
    edges: tuple[tuple[int, int, tuple[int, ...]], ...]
    layout: Layout


def levels_of(network: Network, nodes_max: int = NODES_MAX) -> list[Level]:
    """Lay out a network; the first level is the whole, in blocks if it has many nodes.

    Args:
        network: The network.
        nodes_max: Most nodes that are drawn without blocks.
    """
    making = _Making(network)
    making.add("", range(network.node_count), nodes_max)
    return [level for level in making.levels if level is not None]


class _Making:
    def __init__(self, network: Network) -> None:
        self.network = network
        self.is_backward = backward_of(network)
        self.levels: list[Level | None] = []

    def add(self, name: str, nodes: Sequence[int], nodes_max: int) -> int:
        """Lay out some nodes as a level, and what is in its blocks as levels after it."""
        index = len(self.levels)
        self.levels.append(None)
        items: list[Item] = list(nodes)
        if len(nodes) > nodes_max:
            items = grouped(self.network, nodes, self.is_backward)
        boxes = [self._box(item) for item in items]
        owner = {node: at for at, item in enumerate(items) for node in _members(item)}
        passing: dict[tuple[int, int], dict[int, None]] = {}
        entering, leaving = self._passing(owner, passing)
        self._ports(boxes, passing, entering, leaving)
        edges = tuple([(a, b, tuple(values)) for (a, b), values in passing.items()])
        layout = laid_out(
            [_size(box) for box in boxes],
            [(a, b) for a, b, _ in edges],
            [box.is_backward for box in boxes],
        )
        self.levels[index] = Level(name, tuple(boxes), edges, layout)
        return index

    def _box(self, item: Item) -> Box:
        network = self.network
        if isinstance(item, Block):
            written = [value for node in item.nodes for value in network.writes[node]]
            return Box(
                item.name, -1, self.add(item.name, item.nodes, INNER_MAX),
                tuple(dict.fromkeys(written)), self.is_backward[item.nodes[0]],
                steps=item.nodes, detail=_detail(network, item.nodes),
            )  # fmt: skip
        if item >= len(network.steps):
            value = network.main_value(item)
            return Box(network.values[value].name, item, values=(value,))
        step = network.steps[item]
        outputs = network.writes[item]
        name = network.values[outputs[0]].name if outputs else ""
        return Box(step.operator, item, values=outputs, is_backward=self.is_backward[item],
                   steps=(item,), detail=name)  # fmt: skip

    def _passing(
        self, owner: dict[int, int], passing: dict[tuple[int, int], dict[int, None]]
    ) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """Collect the values between boxes; return those that enter and leave, with the boxes."""
        entering: dict[int, list[int]] = {}
        leaving: dict[int, list[int]] = {}
        for source, target, value in self.network.edges:
            a, b = owner.get(source), owner.get(target)
            if a is None and b is not None:
                entering.setdefault(value, []).append(b)
            elif a is not None and b is None:
                leaving.setdefault(value, []).append(a)
            elif a is not None and b is not None and a != b:
                passing.setdefault((a, b), {})[value] = None
        return entering, leaving

    def _ports(
        self,
        boxes: list[Box],
        passing: dict[tuple[int, int], dict[int, None]],
        entering: dict[int, list[int]],
        leaving: dict[int, list[int]],
    ) -> None:
        """Add boxes for values that come from other blocks, and for those that go there."""
        flag = bool(boxes) and all(box.is_backward for box in boxes)
        for found, is_in in ((entering, True), (leaving, False)):
            whole = list(found.items())
            for value, ends in whole[:_PORTS_MAX]:
                name = self.network.values[value].name
                boxes.append(Box(name, values=(value,), is_backward=flag, is_port=True))
                port = len(boxes) - 1
                for end in ends:
                    passing.setdefault((port, end) if is_in else (end, port), {})[value] = None
            if rest := whole[_PORTS_MAX:]:
                values = tuple([value for value, _ in rest])
                label = f"{len(rest):,} more values"
                boxes.append(Box(label, values=values, is_backward=flag, is_port=True))


def _members(item: Item) -> Sequence[int]:
    return item.nodes if isinstance(item, Block) else (item,)


def _detail(network: Network, steps: Sequence[int]) -> str:
    operator, _ = Counter(network.steps[step].operator for step in steps).most_common(1)[0]
    return f"{len(steps):,} steps, mostly {operator}"


def _size(box: Box) -> tuple[float, float]:
    width = min(_WIDTH_MAX, max(_WIDTH_MIN, len(box.label) * _CHARACTER + 22))
    if box.is_port:
        return width, _PORT_HEIGHT
    return (_WIDTH_MAX, _BLOCK_HEIGHT) if box.level >= 0 else (width, _NODE_HEIGHT)
