"""Rewrites LpPool to `(k * mean(|x| ** p)) ** (1 / p)` over windows of k elements."""

import numpy as np

from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.graph import Constant, DType, Graph, Inline, Node, Value, element_count
from tightship.graph.ir import AttributeValue

FIRST_OF_WHOLE_POWERS = 2
AVERAGE_OPSET = 11


def expand_lp_pool(graph: Graph) -> Graph:
    """Replace every LpPool whose windows lie within its declared padding."""
    writer = _Writer(graph)
    nodes = [each for node in graph.nodes for each in writer.spelled(node)]
    if nodes == list(graph.nodes):
        return graph
    return rebuilt(graph, nodes, constants=writer.constants, values=writer.values)


class _Writer:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.constants: dict[str, Constant] = {}
        self.values: dict[str, Value] = {}

    def spelled(self, node: Node) -> list[Node]:
        """Replace the node by powers, AveragePool, a product and a root; return others as is."""
        attributes = _attributes(self.graph, node)
        if attributes is None:
            return [node]
        power, result = node.attributes.get("p", 2), node.outputs[0]
        assert isinstance(power, int)
        count = element_count(_ints(node, "kernel_shape", ()))
        x, nodes = node.inputs[0], []
        before, after = self.graph.value(x), self.graph.value(result)
        if power % 2:
            nodes.append(self._node("Abs", (x,), f"{result}.absolute", before, 13))
            x = f"{result}.absolute"
        if power > 1:
            exponent = self._number(f"{result}.exponent", power)
            nodes.append(self._node("Pow", (x, exponent), f"{result}.powers", before, 13))
            x = f"{result}.powers"
        mean, total = f"{result}.mean", f"{result}.total" if power > 1 else result
        nodes.append(self._node("AveragePool", (x,), mean, after, AVERAGE_OPSET, attributes))
        inputs = (mean, self._number(f"{result}.count", count))
        nodes.append(self._node("Mul", inputs, total, after, 13))
        if power == 2:
            nodes.append(self._node("Sqrt", (total,), result, after, 13))
        elif power > 1:
            root = self._number(f"{result}.root", 1 / power)
            nodes.append(self._node("Pow", (total, root), result, after, 13))
        return nodes

    def _number(self, name: str, number: float) -> str:
        self.constants[name] = Inline(np.array(number, np.float32))
        return name

    def _node(
        self,
        operator: str,
        inputs: tuple[str, ...],
        output: str,
        like: Value,
        version: int,
        attributes: dict[str, AttributeValue] | None = None,
    ) -> Node:
        self.values[output] = Value(output, like.dtype, like.shape)
        name = f"{output}.{operator}"
        return Node(name, operator, inputs, (output,), attributes or {}, version=version)


def _attributes(graph: Graph, node: Node) -> dict[str, AttributeValue] | None:
    """Return the attributes of the AveragePool; None for a node that is not covered."""
    if node.operator != "LpPool" or node.domain or node.version < FIRST_OF_WHOLE_POWERS:
        return None
    before, after = graph.value(node.inputs[0]), graph.value(node.outputs[0])
    if before.dtype is not DType.FLOAT32 or not before.is_static or not after.is_static:
        return None
    if node.attributes.get("ceil_mode", 0) or any(
        each != 1 for each in _ints(node, "dilations", ())
    ):
        return None
    pads = _pads(node, before.static_shape[2:], after.static_shape[2:])
    kept = {name: node.attributes[name] for name in ("kernel_shape", "strides")
            if name in node.attributes}  # fmt: skip
    return {**kept, "pads": pads, "count_include_pad": 1}


def _pads(node: Node, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    rank = len(before)
    auto = node.attributes.get("auto_pad", "NOTSET")
    if auto == "NOTSET":
        return _ints(node, "pads", (0,) * (2 * rank))
    if auto == "VALID":
        return (0,) * (2 * rank)
    kernel, strides = _ints(node, "kernel_shape", ()), _ints(node, "strides", (1,) * rank)
    total = [
        max((o - 1) * s + k - i, 0)
        for o, s, k, i in zip(after, strides, kernel, before, strict=True)
    ]
    begin = [(each + (auto == "SAME_LOWER")) // 2 for each in total]
    return (*begin, *(each - first for each, first in zip(total, begin, strict=True)))


def _ints(node: Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = node.attributes.get(name, default)
    assert isinstance(value, tuple)
    return tuple(int(v) for v in value)
