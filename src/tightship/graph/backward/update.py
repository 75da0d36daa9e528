"""Weight updates in the graph: nodes that consume gradients as soon as they exist."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace

import numpy as np

from tightship.errors import GraphError, InputError
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.tape import OPSET
from tightship.graph.constant import Constant, Inline
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.layout import DType
from tightship.graph.new_names import NewNames
from tightship.graph.optimizer import Adam, Optimizer, state_of

STEP = "step"
"""Input that counts updates, from 1: a scalar of int64."""
NORM = "gradient_norm"
"""Output with the norm of all gradients before they are clipped: a scalar of float32."""
SCALE = f"{NORM}.scale"
GATHERED = "gathered"
"""Suffix of a weight's accumulated gradients, stored besides an optimizer's state."""
OF_ALL = frozenset({"clip_norm", "decays_vectors", "rate_factors"})
"""Settings of an optimizer for all weights together."""


def with_updates(
    graph: Graph,
    weights: Sequence[str],
    gradients: Sequence[str],
    optimizer: Optimizer,
    *,
    rate: str = "",
    names: NewNames | None = None,
) -> Graph:
    """Make a graph that updates weights, and outputs these instead of their gradients.

    Nodes `SgdUpdate`, `MomentumUpdate` or `AdamUpdate` follow all others, in the order of
    `weights`; before them, with `clip_norm`, come one `SquaresAdded` for each and a `ClipScale`,
    whose norm is an output `NORM`. A weight `w` and its state, such as `w.mean` and `w.square`,
    become inputs; `w.next`, `w.mean.next` and `w.square.next` are outputs, each to be written over
    the input that it replaces. Names that the graph has already are numbered.

    Args:
        graph: Graph with its backward path.
        weights: Constants or inputs of the graph.
        gradients: Gradient of each, outputs of the graph.
        optimizer: Rule by which weights change.
        rate: Name of an input with the learning rate, a scalar of float32, instead of the
            optimizer's.
        names: Names that are new to the graph.

    Raises:
        GraphError: A weight is neither a constant nor an input.
        InputError: A factor of the rate names no weight.
    """
    _check_factors(optimizer, weights)
    names = names or NewNames(graph)
    rate = rate and names.of(rate)
    own, products, factors = _own_rates(rate, optimizer.rate_factors, names)
    scale = ""
    if optimizer.clip_norm is not None and gradients:
        graph = with_norm(graph, weights, gradients, optimizer.clip_norm, names)
        scale = names.of(SCALE)
    scalars = {names.of(STEP): DType.INT64} if isinstance(optimizer, Adam) else {}
    counter = tuple(scalars)
    if rate:
        scalars[rate] = DType.FLOAT32
    types = {name: Value(name, dtype, ()) for name, dtype in scalars.items()}
    types |= {name: Value(name, DType.FLOAT32, ()) for name in own.values()}
    written: list[str] = []
    nodes = list(products)
    for weight, gradient in zip(weights, gradients, strict=True):
        kind = _kind(graph, weight)
        over = (weight, *[names.of(f"{weight}.{part}") for part in state_of(optimizer)])
        after = _followed(over, names)
        types |= {name: replace(kind, name=name) for name in (*over, *after)}
        further = (own.get(weight, rate), scale) if scale else filter(None, [own.get(weight, rate)])
        reads = (weight, gradient, *over[1:], *counter, *further)
        nodes.append(_update(_own(optimizer, kind), reads, after))
        written += over
    kept = [name for name in graph.outputs if name not in set(gradients)]
    graph = replace(graph, constants={**graph.constants, **factors})
    return _updated(graph, (*written, *scalars), nodes, types, (*kept, *_followed(written, names)))


def _check_factors(optimizer: Optimizer, weights: Sequence[str]) -> None:
    for name in optimizer.rate_factors:
        if name not in weights:
            raise InputError(
                f"`rate_factors` has `{name}`, which is not trained: {', '.join(weights)} are."
            )


def _kind(graph: Graph, weight: str) -> Value:
    """Return the type of a weight.

    Raises:
        GraphError: It is neither a constant nor an input.
    """
    if weight not in graph.constants and weight not in graph.inputs:
        raise GraphError(
            f"`{weight}` is neither a constant nor an input of the graph; only these are updated."
        )
    kind = graph.constants.get(weight) or graph.value(weight)
    return Value(weight, kind.dtype, kind.shape)


def with_running_statistics(
    graph: Graph,
    running: Mapping[str, tuple[str, float, float]],
    names: NewNames | None = None,
) -> Graph:
    """Make a graph that updates running statistics by those of each batch.

    Args:
        graph: Graph that computes the statistics of the batch.
        running: For each running statistic, a constant of the graph or a new input: the name of the
            batch's, the share of the old value that is kept, and that of the new one.
        names: Names that are new to the graph: `<statistic>.next`, if free.
    """
    names = names or NewNames(graph)
    types, nodes = {}, []
    for name, (batch, kept, added) in running.items():
        (after,) = _followed((name,), names)
        for each in (name, after):
            types[each] = replace(graph.value(batch), name=each)
        attributes = {"kept": kept, "added": added}
        nodes.append(
            Node(after, "RunningUpdate", (name, batch), (after,), attributes, DOMAIN, OPSET)
        )
    outputs = (*graph.outputs, *_followed(running, names))
    return _updated(graph, tuple(running), nodes, types, outputs)


def with_norm(
    graph: Graph,
    weights: Sequence[str],
    gradients: Sequence[str],
    limit: float,
    names: NewNames | None = None,
) -> Graph:
    """Make a graph with the norm of all gradients as an output, `NORM`.

    A run with a norm that is not finite raises. Squares are summed from the last weight to the
    first, in the order in which gradients are made.

    Args:
        graph: Graph with its backward path.
        weights: Weights of the gradients.
        gradients: Gradient of each.
        limit: Largest norm of the gradients times `SCALE`.
        names: Names that are new to the graph.
    """
    names = names or NewNames(graph)
    nodes, total = [], ""
    for weight, gradient in zip(reversed(weights), reversed(gradients), strict=True):
        reads = (gradient, total) if total else (gradient,)
        total = names.of(f"{weight}.squares")
        nodes.append(Node(total, "SquaresAdded", reads, (total,), {}, DOMAIN, OPSET))
    types = {node.name: Value(node.name, DType.FLOAT64, ()) for node in nodes}
    scale, norm = names.of(SCALE), names.of(NORM)
    types |= {name: Value(name, DType.FLOAT32, ()) for name in (scale, norm)}
    attributes = {"limit": limit}
    nodes.append(Node(scale, "ClipScale", (total,), (scale, norm), attributes, DOMAIN, OPSET))
    return replace(
        graph,
        outputs=(*graph.outputs, norm),
        nodes=(*graph.nodes, *nodes),
        values={**graph.values, **types},
    )


def with_totals(
    graph: Graph,
    weights: Sequence[str],
    gradients: Sequence[str],
    share: float,
    names: NewNames | None = None,
) -> tuple[Graph, tuple[str, ...]]:
    """Make a graph that adds a share of each gradient to its accumulated sum.

    Args:
        graph: Graph with its backward path.
        weights: Weights of the gradients; `<weight>.gathered` becomes an input.
        gradients: Gradient of each, outputs of the graph.
        share: Factor of the gradients.
        names: Names that are new to the graph.

    Returns:
        Graph whose outputs are the sums instead of the gradients, and their names.
    """
    names = names or NewNames(graph)
    gathered = _gathered(weights, names)
    totals = tuple([names.of(f"{weight}.total") for weight in weights])
    types: dict[str, Value] = {}
    nodes = []
    attributes = {"kept": 1.0, "added": share}
    for name, total, gradient in zip(gathered, totals, gradients, strict=True):
        kind = graph.value(gradient)
        types |= {each: replace(kind, name=each) for each in (name, total)}
        reads = (name, gradient)
        nodes.append(Node(total, "RunningUpdate", reads, (total,), attributes, DOMAIN, OPSET))
    kept = [name for name in graph.outputs if name not in set(gradients)]
    return _updated(graph, gathered, nodes, types, (*kept, *totals)), totals


def with_gathered(
    graph: Graph,
    weights: Sequence[str],
    gradients: Sequence[str],
    share: float,
    names: NewNames | None = None,
) -> Graph:
    """Make a graph as `with_totals` does, with each sum written over the former one.

    Constant weights become inputs, and gradients are no longer outputs.
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
    names = names or NewNames(graph)
    pairs = zip(_gathered(weights, names), gradients, strict=True)
    return with_running_statistics(bare, {name: (g, 1.0, share) for name, g in pairs}, names)


def _gathered(weights: Sequence[str], names: NewNames) -> tuple[str, ...]:
    return tuple([names.of(f"{weight}.{GATHERED}") for weight in weights])


def _updated(
    graph: Graph,
    inputs: Sequence[str],
    nodes: Sequence[Node],
    types: Mapping[str, Value],
    outputs: Sequence[str],
) -> Graph:
    """Append nodes, and inputs that may have been constants."""
    held = set(inputs)
    return replace(
        graph,
        inputs=tuple(dict.fromkeys((*graph.inputs, *inputs))),
        outputs=tuple(outputs),
        nodes=(*graph.nodes, *nodes),
        values={**graph.values, **types},
        constants={k: v for k, v in graph.constants.items() if k not in held},
    )


def _followed(before: Iterable[str], names: NewNames) -> tuple[str, ...]:
    return tuple([names.of(f"{name}.next") for name in before])


def _own(optimizer: Optimizer, weight: Value) -> Optimizer:
    """Return the optimizer of a weight: its own rate, no decay if that is only for matrices."""
    factor = optimizer.rate_factors.get(weight.name, 1.0)
    own = replace(optimizer, rate=optimizer.rate * factor)
    if own.decays_vectors or len(weight.shape or ()) > 1:
        return own
    return replace(own, weight_decay=0.0)


def _own_rates(
    rate: str, factors: Mapping[str, float], names: NewNames
) -> tuple[dict[str, str], list[Node], dict[str, Constant]]:
    """Name the rates of weights that have their own, and make the products for them."""
    own = {weight: names.of(f"{weight}.rate") for weight in factors} if rate else {}
    constants: dict[str, Constant] = {
        names.of(f"{weight}.rate.factor"): Inline(np.array(factors[weight], np.float32))
        for weight in own
    }
    products = [
        Node(name, "Mul", (rate, factor), (name,), version=OPSET)
        for name, factor in zip(own.values(), constants, strict=True)
    ]
    return own, products, constants


def _update(optimizer: Optimizer, reads: tuple[str, ...], after: tuple[str, ...]) -> Node:
    """Make an update; empty names in `reads` stand for no rate or scale."""
    plain = "Adam" if isinstance(optimizer, Adam) else "Sgd"
    numbers = {name: float(n) for name, n in asdict(optimizer).items() if name not in OF_ALL}
    operator = f"{'Momentum' if 'velocity' in state_of(optimizer) else plain}Update"
    return Node(after[0], operator, reads, after, numbers, DOMAIN, OPSET)
