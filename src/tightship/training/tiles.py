"""Cuts the largest gradients of a training step into tiles, each consumed as soon as it is made."""

from dataclasses import replace

from tightship.graph.operators import Category, row_of
from tightship.graph.tiles import follows, in_tiles
from tightship.training.step_graph import StepGraph

LARGE = 10
"""Gradients of at least one part in `LARGE` of the arena are cut into tiles."""

PIECES = 16
"""Tiles have at most one part in `PIECES` of the arena."""


def step_in_tiles(step: StepGraph, arena_bytes: int) -> StepGraph | None:
    """Cut gradients into tiles, each consumed by an update of some rows of its weight.

    No sum is cut, so weights are bit-identical if some rows of a matrix product equal these rows of
    the whole product.

    Args:
        step: A step whose graph is ready for the selection of kernels.
        arena_bytes: Size of the arena without tiles.

    Returns:
        The step, whose new outputs are written over their inputs as well; None if no large gradient
        can be cut. Gradients whose norm is taken first cannot.
    """
    graph = in_tiles(step.graph, arena_bytes // LARGE, arena_bytes // PIECES, only_updated=True)
    if graph is step.graph:
        return None
    chain = {
        after: before
        for node in graph.nodes
        if row_of(node).category is Category.UPDATING and "start" in node.attributes
        for after, before in follows(node).items()
    }
    outputs = dict.fromkeys((*graph.outputs, *chain))
    return replace(
        step, graph=replace(graph, outputs=tuple(outputs)), follows={**step.follows, **chain}
    )
