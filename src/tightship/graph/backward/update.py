"""Weights updated by their gradients, in the graph: nodes that consume gradients at once."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from tightship.errors import GraphError, InputError
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.tape import OPSET
from tightship.graph.constant import Constant, Inline
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.layout import DType
from tightship.graph.optimizer import Adam, Optimizer, state_of

STEP = "step"
"""The input that counts updates, from 1: a scalar of int64."""


NORM = "gradient_norm"
"""The output that has the norm of all gradients, before they are clipped: a scalar of float32."""
SCALE = f"{NORM}.scale"
GATHERED = ".gathered"
"""What the input of a weight's gradients so far is called, behind the weight's name."""
OF_ALL = frozenset({"clip_norm", "decays_vectors", "rate_factors"})
"""What an optimizer says of all weights together."""


def with_updates(
    graph: Graph,
    weights: Sequence[str],
    gradients: Sequence[str],
    optimizer: Optimizer,
    *,
    rate: str = "",
) -> Graph:
    """A graph that updates weights, and whose outputs are these instead of their gradients.

    Nodes `SgdUpdate`, `MomentumUpdate` or `AdamUpdate` stand behind all others, in the order of
    `weights`; before them, with `clip_norm`, one `SquaresAdded` for each and a `ClipScale`, whose
    norm is an output `NORM`. A weight `w` and its state, as `w.mean` and `w.square`, become
    inputs; `w.next`, `w.mean.next` and `w.square.next` are outputs, each to be written over the
    input that it follows.

    Args:
        graph: A graph with its backward path.
        weights: Constants or inputs of the graph.
        gradients: The gradient of each, outputs of the graph.
        optimizer: How a weight changes.
        rate: What an input is called that has the learning rate, a scalar of float32, in place of
            the optimizer's.

    Raises:
        GraphError: A weight is no constant or input, or a name is taken.
        InputError: A factor of the rate is for no weight.
    """
    for name in optimizer.rate_factors:
        if name not in weights:
            raise InputError(
                f"`rate_factors` has `{name}`, which is not trained: {', '.join(weights)} are."
            )
    own, products, factors = _own_rates(rate, optimizer.rate_factors)
    scale = ""
    if optimizer.clip_norm is not None and gradients:
        graph, scale = with_norm(graph, weights, gradients, optimizer.clip_norm), SCALE
    names = [f"{w}{part}" for w in weights for part in _parts(optimizer)]
    scalars = {STEP: DType.INT64} if isinstance(optimizer, Adam) else {}
    if rate:
        scalars[rate] = DType.FLOAT32
    taken = (*names, *_followed(names), *scalars, *own.values(), *factors)
    _refuse_taken(graph, taken, weights)
    types = {name: Value(name, dtype, ()) for name, dtype in scalars.items()}
    types |= {name: Value(name, DType.FLOAT32, ()) for name in own.values()}
    types |= _types_kept(graph, weights, _parts(optimizer))
    kept = [name for name in graph.outputs if name not in set(gradients)]
    nodes = [
        _node(
            weight,
            gradient,
            _own(optimizer, types[f"{weight}.next"]),
            (own.get(weight, rate), scale),
        )
        for weight, gradient in zip(weights, gradients, strict=True)
    ]
    graph = replace(graph, constants={**graph.constants, **factors})
    return _updated(graph, (*names, *scalars), names, [*products, *nodes], types, kept)


def _types_kept(graph: Graph, weights: Sequence[str], parts: Sequence[str]) -> dict[str, Value]:
    """Types of weights and of their state, before and after an update.

    Raises:
        GraphError: A weight is no constant or input.
    """
    types = {}
    for weight in weights:
        if weight not in graph.constants and weight not in graph.inputs:
            raise GraphError(
                f"`{weight}` is no constant or input of the graph, so it cannot be updated."
            )
        kind = graph.constants.get(weight) or graph.value(weight)
        for part in parts:
            for name in (f"{weight}{part}", f"{weight}{part}.next"):
                types[name] = Value(name, kind.dtype, kind.shape)
    return types


def with_running_statistics(graph: Graph, running: Mapping[str, tuple[str, float, float]]) -> Graph:
    """A graph that updates running statistics by those of each batch.

    Args:
        graph: A graph whose values the statistics of the batch are.
        running: By the name of a running statistic, a constant of the graph or no more: that of
            the batch, the share of the old one that is kept, and that of the new one.

    Raises:
        GraphError: A name is taken.
    """
    names = list(running)
    _refuse_taken(graph, _followed(names), names)
    types, nodes = {}, []
    for name, (batch, kept, added) in running.items():
        after = f"{name}.next"
        for each in (name, after):
            types[each] = replace(graph.value(batch), name=each)
        attributes = {"kept": kept, "added": added}
        nodes.append(
            Node(after, "RunningUpdate", (name, batch), (after,), attributes, DOMAIN, OPSET)
        )
    return _updated(graph, names, names, nodes, types, graph.outputs)


def with_norm(
    graph: Graph, weights: Sequence[str], gradients: Sequence[str], limit: float
) -> Graph:
    """A graph that has the norm of all gradients as an output, `NORM`.

    A run in which it is no finite number is refused. Squares are added up from the last weight to
    the first, as gradients are made.

    Args:
        graph: A graph with its backward path.
        weights: What the gradients are of.
        gradients: The gradient of each.
        limit: What gradients times `SCALE` have for a norm at most.

    Raises:
        GraphError: A name is taken.
    """
    nodes, total = [], ""
    for weight, gradient in zip(reversed(weights), reversed(gradients), strict=True):
        reads = (gradient, total) if total else (gradient,)
        total = f"{weight}.squares"
        nodes.append(Node(total, "SquaresAdded", reads, (total,), {}, DOMAIN, OPSET))
    types = {node.name: Value(node.name, DType.FLOAT64, ()) for node in nodes}
    types |= {name: Value(name, DType.FLOAT32, ()) for name in (SCALE, NORM)}
    _refuse_taken(graph, list(types), ())
    attributes = {"limit": limit}
    nodes.append(Node(SCALE, "ClipScale", (total,), (SCALE, NORM), attributes, DOMAIN, OPSET))
    return replace(
        graph,
        outputs=(*graph.outputs, NORM),
        nodes=(*graph.nodes, *nodes),
        values={**graph.values, **types},
    )


def with_totals(
    graph: Graph, weights: Sequence[str], gradients: Sequence[str], share: float
) -> tuple[Graph, tuple[str, ...]]:
    """A graph that adds a share of each gradient to what was gathered of it before.

    Args:
        graph: A graph with its backward path.
        weights: What the gradients are of; `<weight>.gathered` becomes an input.
        gradients: The gradient of each, outputs of the graph.
        share: The share.

    Returns:
        The graph whose outputs are the sums in place of the gradients, and their names.

    Raises:
        GraphError: A name is taken.
    """
    names = [f"{weight}{GATHERED}" for weight in weights]
    totals = tuple(f"{weight}.total" for weight in weights)
    _refuse_taken(graph, (*names, *totals), ())
    types: dict[str, Value] = {}
    nodes = []
    attributes = {"kept": 1.0, "added": share}
    for name, total, gradient in zip(names, totals, gradients, strict=True):
        kind = graph.value(gradient)
        types |= {each: replace(kind, name=each) for each in (name, total)}
        reads = (name, gradient)
        nodes.append(Node(total, "RunningUpdate", reads, (total,), attributes, DOMAIN, OPSET))
    kept = [name for name in graph.outputs if name not in set(gradients)]
    made = replace(
        graph,
        inputs=(*graph.inputs, *names),
        outputs=(*kept, *totals),
        nodes=(*graph.nodes, *nodes),
        values={**graph.values, **types},
    )
    return made, totals


def with_gathered(
    graph: Graph, weights: Sequence[str], gradients: Sequence[str], share: float
) -> Graph:
    """As `with_totals`, but that a sum is to be written over what was gathered before.

    Weights that are constants become inputs, and gradients are no outputs any more.
    """
    constants = {name: graph.constants[name] for name in weights if name in graph.constants}
    types = {name: Value(name, each.dtype, each.shape) for name, each in constants.items()}
    bare = replace(
        graph,
        inputs=(*graph.inputs, *constants),
        outputs=tuple(name for name in graph.outputs if name not in set(gradients)),
        values={**graph.values, **types},
        constants={k: v for k, v in graph.constants.items() if k not in constants},
    )
    pairs = zip(weights, gradients, strict=True)
    return with_running_statistics(bare, {f"{w}{GATHERED}": (g, 1.0, share) for w, g in pairs})


def _updated(
    graph: Graph,
    inputs: Sequence[str],
    names: Sequence[str],
    nodes: Sequence[Node],
    types: Mapping[str, Value],
    outputs: Sequence[str],
) -> Graph:
    """The graph with nodes behind the others that write what follows `names`."""
    held = set(names)
    return replace(
        graph,
        inputs=tuple(dict.fromkeys((*graph.inputs, *inputs))),
        outputs=(*outputs, *_followed(names)),
        nodes=(*graph.nodes, *nodes),
        values={**graph.values, **types},
        constants={k: v for k, v in graph.constants.items() if k not in held},
    )


def _refuse_taken(graph: Graph, names: Sequence[str], own: Collection[str]) -> None:
    taken = {*graph.inputs, *graph.values, *graph.constants} - set(own)
    for name in names:
        if name in taken:
            raise GraphError(
                f"`{name}` is a value of the model, and what a step of training adds is called "
                "so: rename it in the model."
            )


def _followed(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{name}.next" for name in names)


def _parts(optimizer: Optimizer) -> tuple[str, ...]:
    return ("", *(f".{name}" for name in state_of(optimizer)))


def _own(optimizer: Optimizer, after: Value) -> Optimizer:
    """The optimizer of a weight: at its own rate, without decay where that is for matrices."""
    factor = optimizer.rate_factors.get(after.name.removesuffix(".next"), 1.0)
    own = replace(optimizer, rate=optimizer.rate * factor)
    if own.decays_vectors or len(after.shape or ()) > 1:
        return own
    return replace(own, weight_decay=0.0)


def _own_rates(
    rate: str, factors: Mapping[str, float]
) -> tuple[dict[str, str], list[Node], dict[str, Constant]]:
    """What rates of weights are called that have their own, and products that give them."""
    own = {weight: f"{weight}.{rate}" for weight in factors} if rate else {}
    constants: dict[str, Constant] = {
        f"{name}.factor": Inline(np.array(factors[weight], np.float32))
        for weight, name in own.items()
    }
    products = [
        Node(name, "Mul", (rate, f"{name}.factor"), (name,), version=OPSET) for name in own.values()
    ]
    return own, products, constants


def _node(weight: str, gradient: str, optimizer: Optimizer, scalars: tuple[str, str]) -> Node:
    """An update; its rate and its scale are empty where it reads none."""
    state = [f"{weight}{part}" for part in _parts(optimizer)[1:]]
    reads = [weight, gradient, *state]
    if isinstance(optimizer, Adam):
        reads.append(STEP)
    reads.extend(scalars if scalars[1] else filter(None, scalars))
    plain = "Adam" if isinstance(optimizer, Adam) else "Sgd"
    numbers = {name: float(n) for name, n in asdict(optimizer).items() if name not in OF_ALL}
    return Node(
        f"{weight}.next",
        f"{'Momentum' if 'velocity' in state_of(optimizer) else plain}Update",
        tuple(reads),
        _followed((weight, *state)),
        numbers,
        DOMAIN,
        OPSET,
    )
