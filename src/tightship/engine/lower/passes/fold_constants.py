"""Folds nodes with constant operands into constants, which are computed when packed."""

from collections.abc import Hashable, Sequence
from functools import partial

import numpy as np

from tightship.engine.kernels import evaluate
from tightship.engine.kernels.failure import named
from tightship.engine.lower.passes.blocks import BlockWeights
from tightship.engine.lower.passes.dequantized import Dequantized, dequantized
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.engine.lower.passes.rewrite import rebuilt
from tightship.engine.lower.passes.widened import HALVES, widened
from tightship.graph import Constant, Derived, DType, Graph, Node, Value
from tightship.graph.constant import Array
from tightship.graph.operators import Category, row_of

DEQUANTIZED = frozenset({"DequantizeBlocks", "DequantizeRows"})
"""Operators of our own whose results kernels read as they are stored."""


def fold_constants(graph: Graph) -> Graph:
    """Replace every node that depends on constants or shapes alone.

    No element of a weight is read here: a folded constant holds the recipe, and reshaping only
    changes a constant's shape.
    """
    constants = {**graph.constants}
    nodes: list[Node] = []
    for node in graph.nodes:
        folded = _known(graph, node) or _fold(graph, node, constants)
        if folded is None:
            nodes.append(node)
        else:
            constants.update(folded)
    return rebuilt(graph, nodes, constants=constants)


def _known(graph: Graph, node: Node) -> dict[str, Constant] | None:
    if node.writes and all(name in graph.known for name in node.writes):
        return {name: graph.known[name] for name in node.writes}
    return None


def _fold(graph: Graph, node: Node, constants: dict[str, Constant]) -> dict[str, Constant] | None:
    values = [graph.value(name) for name in node.writes]
    if (
        row_of(node).is_random
        or node.subgraphs
        or not all(name in constants for name in node.reads)
        or not all(value.is_static for value in values)
    ):
        return None
    if row_of(node).category is Category.RESHAPING:
        return {node.outputs[0]: reshaped(constants[node.inputs[0]], values[0].static_shape)}
    operands = [constants[name] if name else None for name in node.inputs]
    if node.operator == "DequantizeLinear" and not node.domain:
        kept = dequantized(node, operands)
        if kept is not None and values[0].dtype is kept.dtype:
            return {node.outputs[0]: kept}
    in_blocks = _in_blocks(node, operands, values[0].dtype)
    if in_blocks is not None:
        return {node.outputs[0]: in_blocks}
    if node.operator == "Cast" and not node.domain and values[0].dtype is DType.FLOAT32:
        source = constants[node.inputs[0]]
        if source.dtype in HALVES:
            return {node.outputs[0]: widened(source)}
    types = [graph.value(name) if name else None for name in node.outputs]
    return {
        value.name: _computed(node, operands, types, position)
        for position, value in enumerate(types)
        if value is not None
    }


def _in_blocks(
    node: Node, operands: list[Constant | None], dtype: DType | None
) -> BlockWeights | None:
    """Return the result as a matrix in blocks, if it is one."""
    dequantizes = node.operator in DEQUANTIZED or node.operator == "DequantizeLinear"
    moves_blocks = bool(operands) and isinstance(operands[0], (BlockWeights, Dequantized))
    if not dequantizes and not moves_blocks:
        return None
    from tightship.engine.lower.passes.block_weights import block_weights  # few models have such

    return block_weights(node, operands, dtype)


def _computed(
    node: Node, operands: list[Constant | None], types: list[Value | None], position: int
) -> Derived:
    value = types[position]
    assert value is not None
    assert value.dtype is not None

    compute = partial(_evaluated, node, tuple(operands), tuple(types), position)
    sources = tuple([operand for operand in operands if operand is not None])
    return Derived(value.dtype, value.static_shape, compute, sources, recipe_of(node, position))


def _evaluated(
    node: Node,
    operands: Sequence[Constant | None],
    types: Sequence[Value | None],
    position: int,
) -> Array:
    arrays = [None if operand is None else operand.array() for operand in operands]
    with named(node, "be computed from its constants"):
        result = evaluate(node, arrays, types)[position]
    assert isinstance(result, np.ndarray)
    return result


def recipe_of(node: Node, position: int) -> Hashable:
    """Return a key of a folded node on given operands; None if attributes have no key."""
    attributes = tuple(sorted(node.attributes.items()))
    plain = all(isinstance(value, (int, float, str, bytes, tuple)) for _, value in attributes)
    absent = tuple(not name for name in node.inputs)
    return (
        (node.operator, node.domain, node.version, position, attributes, absent) if plain else None
    )
