"""Weights updated by their gradients, in the graph: nodes that consume gradients at once."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from tightship.errors import GraphError
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.tape import OPSET
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.layout import DType

STEP = "step"
"""The input that counts updates, from 1: a scalar of int64."""


@dataclass(frozen=True, slots=True)
class Sgd:
    """`w - rate * d(w)`."""

    rate: float = 0.01


@dataclass(frozen=True, slots=True)
class Adam:
    """Kingma and Ba's Adam, means corrected by the number of the step."""

    rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


Optimizer = Sgd | Adam

STATE = {Sgd: (), Adam: ("mean", "square")}
"""What an optimizer keeps of each weight, as large as it is."""


def with_updates(
    graph: Graph, weights: Sequence[str], gradients: Sequence[str], optimizer: Optimizer
) -> Graph:
    """A graph that updates weights, and whose outputs are these instead of their gradients.

    Nodes `SgdUpdate` or `AdamUpdate` stand behind all others, in the order of `weights`. A weight
    `w` and its state, `w.mean` and `w.square`, become inputs; `w.next`, `w.mean.next` and
    `w.square.next` are outputs, each to be written over the input that it follows.

    Args:
        graph: A graph with its backward path.
        weights: Constants or inputs of the graph.
        gradients: The gradient of each, outputs of the graph.
        optimizer: How a weight changes.

    Raises:
        GraphError: A weight is no constant or input, or a name is taken.
    """
    names = [f"{w}{part}" for w in weights for part in _parts(optimizer)]
    given = set(graph.inputs)
    taken = {*given, *graph.values, *graph.constants} - set(weights)
    followed = [f"{name}.next" for name in names]
    for name in (*names, *followed, *([STEP] if STATE[type(optimizer)] else ())):
        if name in taken:
            raise GraphError(f"`{name}` is a value of the graph; give it another name.")
    types = {}
    for weight in weights:
        if weight not in graph.constants and weight not in given:
            raise GraphError(
                f"`{weight}` is no constant or input of the graph, so it cannot be updated."
            )
        kind = graph.constants.get(weight) or graph.value(weight)
        for part in _parts(optimizer):
            for name in (f"{weight}{part}", f"{weight}{part}.next"):
                types[name] = Value(name, kind.dtype, kind.shape)
    if STATE[type(optimizer)]:
        types[STEP] = Value(STEP, DType.INT64, ())
        names.append(STEP)
    nodes = [
        _node(weight, gradient, optimizer)
        for weight, gradient in zip(weights, gradients, strict=True)
    ]
    return replace(
        graph,
        inputs=(*graph.inputs, *[name for name in names if name not in given]),
        outputs=(*[name for name in graph.outputs if name not in set(gradients)], *followed),
        nodes=(*graph.nodes, *nodes),
        values={**graph.values, **types},
        constants={k: v for k, v in graph.constants.items() if k not in set(weights)},
    )


def _parts(optimizer: Optimizer) -> tuple[str, ...]:
    return ("", *(f".{name}" for name in STATE[type(optimizer)]))


def _node(weight: str, gradient: str, optimizer: Optimizer) -> Node:
    state = [f"{weight}{part}" for part in _parts(optimizer)[1:]]
    return Node(
        f"{weight}.next",
        f"{type(optimizer).__name__}Update",
        (weight, gradient, *state, *([STEP] if state else ())),
        tuple(f"{name}.next" for name in (weight, *state)),
        asdict(optimizer),
        DOMAIN,
        OPSET,
    )
