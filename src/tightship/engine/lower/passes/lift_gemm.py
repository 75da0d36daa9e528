"""Rewrites a Gemm between reshapes to a product of stacked rows.

Nodes after the reshape can then be fused into the product's kernel.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import Constant, Derived, DType, Graph, Node, Value
from tightship.graph.constant import Array
from tightship.graph.symbolic import SymbolicConstant


@dataclass(frozen=True, slots=True)
class _Lifting:
    """Graph, the maker of each value, and the constants and values to add."""

    graph: Graph
    makers: Mapping[str, Node]
    constants: dict[str, Constant] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)


def lift_gemm(graph: Graph) -> Graph:
    """Replace a Gemm and the only Reshape that reads it, and splits rows, by MatMul and Add.

    The rows are the value before a Reshape that flattened it, if there is one.
    """
    counts, readers = graph.uses(), readers_of(graph)
    lifting = _Lifting(graph, {name: node for node in graph.nodes for name in node.writes})
    nodes: list[Node] = []
    absorbed: set[str] = set()
    for node in graph.nodes:
        last = sole_reader(counts, readers, node.outputs[0]) if node.operator == "Gemm" else None
        if last is not None and _fits(graph, node, last):
            absorbed.add(last.name)
            nodes.extend(_product(lifting, node, last))
        elif node.name not in absorbed:
            nodes.append(node)
    return rebuilt(graph, nodes, constants=lifting.constants, values=lifting.values)


def _fits(graph: Graph, gemm: Node, last: Node) -> bool:
    """Whether a Gemm by constants is reshaped into stacks of its rows."""
    if gemm.domain or gemm.fused or last.operator != "Reshape" or last.domain:
        return False
    attributes = gemm.attributes
    if attributes.get("alpha", 1.0) != 1 or attributes.get("beta", 1.0) != 1:
        return False
    if attributes.get("transA", 0) or last.inputs[0] != gemm.outputs[0]:
        return False
    names = [name for name in gemm.inputs[1:] if name]
    before, after = graph.value(gemm.outputs[0]), graph.value(last.outputs[0])
    return (
        all(name in graph.constants for name in names)
        and all(len(graph.constants[name].shape) == 1 for name in names[1:])
        and before.is_static
        and after.is_static
        and before.dtype is DType.FLOAT32
        and len(after.static_shape) > 2
        and after.static_shape[-1] == before.static_shape[-1]
    )


def _product(lifting: _Lifting, gemm: Node, last: Node) -> list[Node]:
    source, nodes = _rows(lifting, gemm, last)
    weight = _weight(lifting, gemm)
    bias = gemm.inputs[2] if len(gemm.inputs) > 2 else ""
    if not bias:
        return [*nodes, Node(gemm.name, "MatMul", (source, weight), last.outputs, version=13)]
    result = lifting.graph.value(last.outputs[0])
    product = f"{gemm.outputs[0]}.product"
    lifting.values[product] = Value(product, result.dtype, result.shape)
    return [
        *nodes,
        Node(gemm.name, "MatMul", (source, weight), (product,), version=13),
        Node(last.name, "Add", (product, bias), last.outputs, version=14),
    ]


def _rows(lifting: _Lifting, gemm: Node, last: Node) -> tuple[str, list[Node]]:
    """Return the Gemm's operand stacked like the result, and the nodes that make it."""
    graph, name = lifting.graph, gemm.inputs[0]
    shape = (*graph.value(last.outputs[0]).static_shape[:-1], graph.value(name).static_shape[1])
    flat = lifting.makers.get(name)
    if flat is not None and flat.operator == "Reshape" and not flat.domain:
        before = graph.value(flat.inputs[0])
        if before.is_static and before.static_shape == shape:
            return flat.inputs[0], []
    stacked = f"{gemm.name}.stacked"
    lifting.values[stacked] = Value(stacked, DType.FLOAT32, shape)
    lifting.constants[f"{stacked}.shape"] = SymbolicConstant(DType.INT64, np.array(shape, object))
    inputs = (name, f"{stacked}.shape")
    return stacked, [Node(stacked, "Reshape", inputs, (stacked,), version=14)]


def _weight(lifting: _Lifting, gemm: Node) -> str:
    name = gemm.inputs[1]
    if not gemm.attributes.get("transB", 0):
        return name
    constant = lifting.graph.constants[name]

    def compute() -> Array:
        return np.ascontiguousarray(constant.array().T)

    shape = (constant.shape[1], constant.shape[0])
    transposed = Derived(DType.FLOAT32, shape, compute, (constant,), "transposed")
    lifting.constants[f"{name}.transposed"] = transposed
    return f"{name}.transposed"
