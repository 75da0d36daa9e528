"""Computes the logits of the last token alone: the row is taken before the head."""

from dataclasses import replace

import numpy as np

from tightship.engine.state.rules import is_elementwise
from tightship.graph import DType, Graph, Inline, Node, Value
from tightship.graph.new_names import NewNames


def last_row(graph: Graph, output: str) -> Graph:
    """Return a graph whose output `[batch, steps, ...]` has the last step alone.

    Nodes that compute each step by itself (products by weights, activations) compute one.
    """
    makers = {name: index for index, node in enumerate(graph.nodes) for name in node.writes}
    fixed = _fixed(graph)
    chain: list[int] = []
    name = output
    while name in makers and (source := _row_by_row(graph, graph.nodes[makers[name]], name, fixed)):
        chain.append(makers[name])
        name = source
    names = NewNames(graph)
    values, constants, nodes = dict(graph.values), dict(graph.constants), list(graph.nodes)
    indices = names.new("last_row.index")
    constants[indices] = Inline(np.array([-1]))
    values[indices] = Value(indices, DType.INT64, (1,))
    taken = names.new(f"{name}.last_row")
    renamed = {name: taken}
    values[taken] = _one_row(graph.value(name), taken)
    gather = Node(f"{taken}/Gather", "Gather", (name, indices), (taken,), {"axis": 1}, version=13)
    position = makers.get(name, -1)
    for index in reversed(chain):
        node = nodes[index]
        found = node.outputs[0]
        renamed[found] = found if found == output else names.new(f"{found}.last_row")
        inputs = tuple(renamed.get(each, each) for each in node.inputs)
        nodes[index] = replace(node, inputs=inputs, outputs=(renamed[found],))
        values[renamed[found]] = _one_row(graph.value(found), renamed[found])
    if not chain:
        whole = names.new(f"{output}.rows")
        if position < 0:
            return graph
        maker = nodes[position]
        outputs = tuple(whole if each == output else each for each in maker.outputs)
        nodes[position] = replace(maker, outputs=outputs)
        values[whole] = replace(graph.value(output), name=whole)
        values[output] = _one_row(graph.value(output), output)
        gather = replace(gather, inputs=(whole, indices), outputs=(output,))
    nodes.insert(position + 1, gather)
    return replace(graph, nodes=tuple(nodes), values=values, constants=constants)


def _fixed(graph: Graph) -> set[str]:
    """Return the values that nodes compute from constants alone, such as dequantized weights."""
    found: set[str] = set()
    for node in graph.nodes:
        if not node.subgraphs and all(
            name in found or graph.constant(name) is not None for name in node.reads
        ):
            found.update(node.writes)
    return found


def _row_by_row(graph: Graph, node: Node, name: str, fixed: set[str]) -> str:
    """Return the operand that a node treats row by row, if no other node reads its result."""
    readers = len(graph.reads.get(name, ())) + (name in graph.outputs)
    operands = [each for each in node.reads if graph.constant(each) is None and each not in fixed]
    is_plain = not (node.subgraphs or node.fused or node.domain) and len(node.writes) == 1
    if readers != 1 or not is_plain or len(operands) != 1:
        return ""
    (source,) = operands
    before, after = graph.value(source).shape or (), graph.value(name).shape or ()
    if len(before) != 3 or before[:2] != after[:2]:
        return ""
    if node.operator == "MatMul":
        return source if node.inputs[0] == source else ""
    others = [graph.value(each).static_shape for each in node.reads if each != source]
    return source if is_elementwise(node) and all(len(s) < 2 or s[-2] == 1 for s in others) else ""


def _one_row(value: Value, name: str) -> Value:
    batch, _, *rest = value.static_shape
    return Value(name, value.dtype, (batch, 1, *rest))
