"""Makes the graph of a training step of a model: with losses and the backward pass."""

from dataclasses import replace

from tightship.errors import GraphError
from tightship.graph import Graph
from tightship.graph.backward import (
    Optimizer,
    backward,
    parameters,
    with_batch_statistics,
    with_squared_error,
    with_updates,
)
from tightship.graph.new_names import NewNames


def training_graph(graph: Graph) -> tuple[Graph, tuple[str, ...]]:
    """Make the graph of a training step; also return its outputs that are gradients of weights.

    Batch normalizations use statistics of the batch. Scalar float outputs of the model are its
    losses. A model without them gets a squared error on each float output, which needs as much
    memory as most losses: a gradient as large as the output, which it may overwrite. Other outputs
    are dropped.

    Args:
        graph: A typed graph of a model.

    Raises:
        GraphError: The model has nothing to train or no float output, or an operator on the way
            has no rule.
    """
    graph = with_batch_statistics(graph)
    weights = parameters(graph)
    if not weights:
        raise GraphError("the model has no weights to train: no node reads a constant of floats")
    floats = [name for name in dict.fromkeys(graph.outputs) if _is_float(graph, name)]
    losses = [name for name in floats if graph.value(name).shape == ()]
    if not losses:
        for name in floats:
            before, target = graph, NewNames(graph).new(f"{name}.target")
            graph = with_squared_error(before, name, target)
            losses += [each for each in graph.outputs if each not in before.outputs]
    if not losses:
        raise GraphError("the model has no output of floats that could have a loss")
    made = backward(replace(graph, outputs=tuple(losses)), losses, weights)
    return made, made.outputs[len(losses) :]


def updating_graph(graph: Graph, optimizer: Optimizer) -> Graph:
    """Make `training_graph` with each weight updated by its gradient at the end.

    Raises:
        GraphError: As `training_graph`.
    """
    step, gradients = training_graph(graph)
    return with_updates(step, parameters(with_batch_statistics(graph)), gradients, optimizer)


def _is_float(graph: Graph, name: str) -> bool:
    dtype = graph.value(name).dtype
    return dtype is not None and "float" in dtype.value
