"""Rewrites a Gemm between reshapes to a product of stacked rows.

Nodes after the reshape can then be fused into the product's kernel.
"""

from collections.abc import Mapping

import numpy as np

from tightship.engine.lower.passes.rewrite import GraphWriter, readers_of, sole_reader
from tightship.graph import Derived, DType, Graph, Node
from tightship.graph.constant import Array


def lift_gemm(graph: Graph) -> Graph:
    """Replace a Gemm and the only Reshape that reads it, and splits rows, by MatMul and Add.

    The rows are the value before a Reshape that flattened it, if there is one.
    """
    counts, readers = graph.uses(), readers_of(graph)
    makers = {name: node for node in graph.nodes for name in node.writes}
    writer = GraphWriter(graph)
    absorbed: set[str] = set()
    for node in graph.nodes:
        last = sole_reader(counts, readers, node.outputs[0]) if node.operator == "Gemm" else None
        if last is not None and _fits(graph, node, last):
            absorbed.add(last.name)
            _lift(writer, makers, node, last)
        elif node.name not in absorbed:
            writer.nodes.append(node)
    return writer.written()


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


def _lift(writer: GraphWriter, makers: Mapping[str, Node], gemm: Node, last: Node) -> None:
    """Write a MatMul of stacked rows, and an Add if the Gemm has a bias."""
    operands = _rows(writer, makers, gemm, last), _weight(writer, gemm)
    bias, result = gemm.inputs[2] if len(gemm.inputs) > 2 else "", last.outputs[0]
    if not bias:
        writer.add("MatMul", operands, result, name=gemm.name)
        return
    product = writer.declare(f"{gemm.outputs[0]}.product", writer.shape(result))
    writer.add("MatMul", operands, product, name=gemm.name)
    writer.add("Add", (product, bias), result, name=last.name)


def _rows(writer: GraphWriter, makers: Mapping[str, Node], gemm: Node, last: Node) -> str:
    """Return the Gemm's operand stacked like the result."""
    name, flat = gemm.inputs[0], makers.get(gemm.inputs[0])
    shape = (*writer.shape(last.outputs[0])[:-1], writer.shape(name)[1])
    if flat is not None and flat.operator == "Reshape" and not flat.domain:
        before = writer.graph.value(flat.inputs[0])
        if before.is_static and before.static_shape == shape:
            return flat.inputs[0]
    return writer.reshape(name, shape, writer.declare(f"{gemm.name}.stacked", shape))


def _weight(writer: GraphWriter, gemm: Node) -> str:
    name = gemm.inputs[1]
    if not gemm.attributes.get("transB", 0):
        return name
    constant = writer.graph.constants[name]

    def compute() -> Array:
        return np.ascontiguousarray(constant.array().T)

    shape = (constant.shape[1], constant.shape[0])
    transposed = Derived(DType.FLOAT32, shape, compute, (constant,), "transposed")
    writer.constants[f"{name}.transposed"] = transposed
    return f"{name}.transposed"
