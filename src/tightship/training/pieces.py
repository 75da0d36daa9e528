"""A training step whose largest gradients are made and consumed by rows of their weight."""

from dataclasses import replace

from tightship.graph.backward import DOMAIN
from tightship.graph.operators import UPDATES
from tightship.graph.pieces import follows, in_pieces
from tightship.training.step_graph import StepGraph

LARGE = 10
"""A gradient is cut from this part of the arena on."""

PIECES = 16
"""Pieces are as large as this part of the arena, or smaller."""


def step_in_pieces(step: StepGraph, arena_bytes: int) -> StepGraph | None:
    """The step with gradients in pieces, each consumed by an update of some rows of the weight.

    No sum is cut: the rows of a weight have the bits that they would have, as far as some rows of a
    product are those of the whole.

    Args:
        step: Its graph is one that kernels are selected for.
        arena_bytes: What its arena takes as it is.

    Returns:
        The step, whose further outputs are written over what they follow as well; None where no
        large gradient can be cut. Those whose norm is taken before cannot.
    """
    graph = in_pieces(step.graph, arena_bytes // LARGE, arena_bytes // PIECES, only_updated=True)
    if graph is step.graph:
        return None
    chain = {
        after: before
        for node in graph.nodes
        if node.domain == DOMAIN and node.operator in UPDATES and "start" in node.attributes
        for after, before in follows(node).items()
    }
    outputs = dict.fromkeys((*graph.outputs, *chain))
    return replace(
        step, graph=replace(graph, outputs=tuple(outputs)), follows={**step.follows, **chain}
    )
