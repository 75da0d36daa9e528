"""Computes gradients of matrices in the orientation of the matrix, without a Transpose."""

from dataclasses import replace

from tightship.engine.lower.passes.rewrite import readers_of, rebuilt, sole_reader
from tightship.graph import Graph, Node

PRODUCTS = frozenset({"Gemm", "TransposedMatMul"})


def transpose_gradients(graph: Graph) -> Graph:
    """Replace a product that only a Transpose reads by the product of its factors swapped.

    Both factors must be computed matrices, the first transposed, as in gradients of matrices.
    """
    counts, readers = graph.uses(), readers_of(graph)
    nodes = []
    turned: dict[str, Node] = {}
    for node in graph.nodes:
        product = turned.pop(node.inputs[0], None) if node.inputs else None
        if product is not None:
            first, second = product.inputs
            nodes.append(replace(product, inputs=(second, first), outputs=node.outputs))
        elif _is_gradient(graph, node) and _turns(sole_reader(counts, readers, node.outputs[0])):
            turned[node.outputs[0]] = node
        else:
            nodes.append(node)
    return rebuilt(graph, nodes)


def _is_gradient(graph: Graph, node: Node) -> bool:
    return (
        node.operator in PRODUCTS
        and not node.fused
        and bool(node.attributes.get("transA"))
        and not node.attributes.get("transB")
        and len(node.reads) == 2
        and all(
            name not in graph.constants and len(graph.value(name).shape or ()) == 2
            for name in node.reads
        )
    )


def _turns(reader: Node | None) -> bool:
    """Whether a node swaps the two axes of a matrix, and does nothing else."""
    return (
        reader is not None
        and reader.operator == "Transpose"
        and not reader.fused
        and reader.attributes.get("perm", (1, 0)) == (1, 0)
    )
