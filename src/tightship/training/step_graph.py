"""The graph of a training step: a model, its loss, the backward path and the updates."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.engine.lower.join_activation import join_activation
from tightship.engine.lower.join_normalization import join_normalization
from tightship.errors import InputError
from tightship.graph import Constant, DType, Fill, Graph, Node, element_count
from tightship.graph.backward import (
    GATHERED,
    NORM,
    STEP,
    backward,
    constants_read,
    parameters,
    with_batch_statistics,
    with_cross_entropy,
    with_dropout,
    with_gathered,
    with_norm,
    with_running_statistics,
    with_squared_error,
    with_totals,
    with_updates,
)
from tightship.graph.new_names import NewNames
from tightship.graph.optimizer import Adam, Optimizer, state_of
from tightship.training.bodies import refuse_training_forms
from tightship.training.labels import Labels, labels_of
from tightship.training.written_out import written_out

RATE = "rate"
"""The input that has the learning rate: a scalar of float32."""
SEED_MAX = 2**63 - 1
QUANTIZED = frozenset({DType.INT8, DType.UINT8})


@dataclass(frozen=True, slots=True)
class Objective:
    """What a model is trained for.

    Attributes:
        loss: `cross_entropy`, `squared_error`, or an output of the model that is its loss.
        output: The output that the loss is of; None where the model has one.
        labels: What the input is called that the loss compares with.
        weights: Constants that are trained; None for `parameters`.
        classes_axis: Where classes are in scores of a cross entropy; None for where they must be.
        dropout: What dropouts drop, in place of the ratio of each; None for that.
        seed: What dropouts draw by.
        accumulate: Runs whose gradients are averaged before weights change.
    """

    loss: str
    output: str | None = None
    labels: str = "labels"
    weights: Collection[str] | None = None
    classes_axis: int | None = None
    dropout: float | None = None
    seed: int = 0
    accumulate: int = 1

    def __post_init__(self) -> None:
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise InputError(
                f"`dropout` is {self.dropout}; it is a share of elements, from 0 to below 1."
            )


@dataclass(frozen=True, slots=True)
class StepGraph:
    """A graph that is run again and again, some outputs of which are inputs of the next run.

    Attributes:
        graph: The graph; it may hold anything, as its nodes update what they update.
        loss: The output that is shown: a float of one element.
        held: What inputs have before the first run that are no caller's.
        follows: Inputs among these, by the names of the outputs that are written over them; or
            another such output, where several are written over one input in turn.
        weights: Inputs among these that are the model's own: weights and running statistics.
        state: Inputs among these that hold something of a weight: the weight, and what of it.
        rate: The input that has the learning rate, and what it has at first.
        counter: The input that counts runs, from 1: a scalar of int64; empty if none does.
        norm: The output that is the norm of all gradients; empty if none is.
        dropout: The input that has a seed and the number of the run, and the seed at first.
        labels: What labels there may be; None where the loss knows by itself.
        gathering: What runs instead but each `accumulate`-th time: it adds gradients up in inputs
            that are held here, and changes no weight; None where each run changes them.
        accumulate: How many runs change weights once.
    """

    graph: Graph
    loss: str
    held: Mapping[str, Constant]
    follows: Mapping[str, str]
    weights: tuple[str, ...]
    state: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    rate: tuple[str, float] = ("", 0.0)
    counter: str = ""
    norm: str = ""
    dropout: tuple[str, int] = ("", 0)
    labels: Labels | None = None
    gathering: "StepGraph | None" = None
    accumulate: int = 1

    def __post_init__(self) -> None:
        if self.accumulate < 1:
            raise InputError(f"`accumulate` is {self.accumulate}; it must be at least 1.")
        seed = self.dropout[1]
        if not 0 <= seed <= SEED_MAX:
            raise InputError(f"`seed` is {seed}; it must be 0 to {SEED_MAX}.")

    @property
    def shown(self) -> tuple[str, ...]:
        """Outputs that are there before anything is written over."""
        return (self.loss, self.norm) if self.norm else (self.loss,)

    def followed(self, name: str) -> str:
        """The input that an output is written over."""
        while name in self.follows:
            name = self.follows[name]
        return name


def step_graph(graph: Graph, objective: Objective, optimizer: Optimizer) -> StepGraph:
    """A step of training a model.

    Raises:
        InputError: The objective names what is not there, or weights are quantized.
        GraphError: An operator on the way to the loss has no gradient.
    """
    for simplify in (written_out, join_activation, join_normalization):
        graph = simplify(graph)
    refuse_training_forms(graph, objective.dropout)
    by_batch = with_batch_statistics(graph)
    statistics = _Statistics.of(graph, by_batch)
    graph, drops = with_dropout(by_batch, objective.dropout)
    weights = _weights(graph, objective.weights)
    statistics.refuse_shared(weights)
    graph, loss, labels = _with_loss(graph, objective)
    given = {name: graph.constants[name] for name in weights}
    made = backward(graph, [loss], weights)
    gradients = made.outputs[len(graph.outputs) :]
    made = replace(made, outputs=(loss, *gradients))
    step = updating_step(made, loss, Trained(given, gradients), optimizer, objective.accumulate)

    def with_statistics(part: StepGraph) -> StepGraph:
        graph = with_running_statistics(part.graph, statistics.running)
        after = graph.outputs[len(part.graph.outputs) :]
        return replace(
            part,
            graph=graph,
            held={**part.held, **statistics.constants},
            follows={**part.follows, **dict(zip(after, statistics.running, strict=True))},
            weights=(*weights, *statistics.constants),
            dropout=(drops, objective.seed),
            labels=labels,
        )

    gathering = step.gathering and with_statistics(step.gathering)
    return replace(with_statistics(step), gathering=gathering)


@dataclass(frozen=True, slots=True)
class Trained:
    """Weights, what they are at first, and the gradient of each."""

    weights: Mapping[str, Constant]
    gradients: Sequence[str]


def updating_step(
    graph: Graph, loss: str, trained: Trained, optimizer: Optimizer, accumulate: int = 1
) -> StepGraph:
    """A graph with its backward path, and updates behind it.

    Args:
        graph: Its outputs end in the gradients.
        loss: The output that is shown.
        trained: Constants or inputs of the graph.
        optimizer: How they change.
        accumulate: Runs whose gradients are averaged before they do.

    Raises:
        InputError: `accumulate` is below 1.
    """
    weights, gradients = tuple(trained.weights), trained.gradients
    names = NewNames(graph)
    parts = [*state_of(optimizer), *([GATHERED] if accumulate > 1 else [])]
    state = {names.of(f"{w}.{part}"): (w, part) for w in weights for part in parts}
    norm = names.of(NORM) if optimizer.clip_norm is not None else ""
    gathering = None
    if accumulate > 1:
        checked = with_norm(graph, weights, gradients, math.inf, names) if norm else graph
        gathered = with_gathered(checked, weights, gradients, 1 / accumulate, names)
        over = [name for name, (_, part) in state.items() if part == GATHERED]
        more = {names.of(f"{name}.next"): name for name in over}
        gathering = StepGraph(gathered, loss, {}, more, weights, norm=norm)
        graph, gradients = with_totals(graph, weights, gradients, 1 / accumulate, names)
    kinds = {name: trained.weights[weight] for name, (weight, _) in state.items()}
    zeros = {n: Fill(np.zeros((), each.dtype.numpy), each.shape) for n, each in kinds.items()}
    kept = [*weights, *(name for name, (_, part) in state.items() if part != GATHERED)]
    return StepGraph(
        with_updates(graph, weights, gradients, optimizer, rate=RATE, names=names),
        loss,
        {**trained.weights, **zeros},
        {names.of(f"{name}.next"): name for name in kept},
        weights,
        state,
        (names.of(RATE), optimizer.rate),
        names.of(STEP) if isinstance(optimizer, Adam) else "",
        norm,
        gathering=gathering,
        accumulate=accumulate,
    )


def _weights(graph: Graph, chosen: Collection[str] | None) -> tuple[str, ...]:
    if chosen is not None:
        found = constants_read(graph)
        for name in chosen:
            if name not in found:
                raise InputError(
                    f"`{name}` cannot be trained: it must be a constant of floats that the model "
                    f"reads. There are {', '.join(found) or 'none'}."
                )
        return _of_known_floats(graph, [name for name in found if name in set(chosen)])
    found = parameters(graph)
    for name, constant in graph.constants.items():
        if constant.dtype in QUANTIZED and len(constant.shape) > 1:
            raise InputError(
                f"`{name}` is quantized, and integers have no gradient: train the model that this "
                "one was quantized from, or name the floats to train as `weights`."
            )
    if not found:
        raise InputError("The model has no weights to train: no node reads a constant of floats.")
    return _of_known_floats(graph, found)


def _of_known_floats(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """The names, none of which is of floats that no gradient has a kernel of."""
    for name in names:
        if graph.constants[name].dtype is DType.BFLOAT16:
            raise InputError(
                f"`{name}` is bfloat16, which no gradient has a kernel of: train the model in "
                "float32, and convert what `save` writes."
            )
    return tuple(names)


def _with_loss(graph: Graph, objective: Objective) -> tuple[Graph, str, Labels | None]:
    """The graph with its loss, what that is called, and what labels it takes."""
    loss, output = objective.loss, objective.output
    if loss in LOSSES:
        if output is None:
            if len(graph.outputs) != 1:
                raise InputError(
                    f"The model has outputs {', '.join(graph.outputs)}; say by `output` which of "
                    f"them the loss `{loss}` is of."
                )
            (output,) = graph.outputs
        if output not in graph.outputs:
            raise InputError(
                f"There is no output `{output}`; outputs are {', '.join(graph.outputs)}."
            )
        scores = graph.value(output)
        if loss == "cross_entropy" and scores.is_static and len(scores.static_shape) > 1:
            labels = labels_of(graph, output, objective.labels, objective.classes_axis)
            made = with_cross_entropy(graph, output, objective.labels, axis=labels.axis)
        else:
            labels, made = None, LOSSES[loss](graph, output, objective.labels)
        (shown,) = set(made.outputs) - set(graph.outputs)
        return made, shown, labels
    value = graph.value(loss)
    if loss not in graph.outputs:
        raise InputError(
            f"There is no loss `{loss}`; give {', '.join(f'`{name}`' for name in LOSSES)}, or an "
            f"output that is a loss: the model's are {', '.join(graph.outputs)}."
        )
    if (
        value.dtype is not DType.FLOAT32
        or not value.is_static
        or element_count(value.static_shape) != 1
    ):
        raise InputError(
            f"Output `{loss}` is no loss: it must be one float32, and has shape {value.shape} of "
            f"{value.dtype.value if value.dtype else 'no tensor'}. Give "
            f"{', '.join(f'`{name}`' for name in LOSSES)} as the loss of it."
        )
    return graph, loss, None


LOSSES = {"cross_entropy": with_cross_entropy, "squared_error": with_squared_error}
"""By name: from a graph, one of its outputs and the name of the input to compare with."""


@dataclass(slots=True)
class _Statistics:
    """Running statistics of batch normalizations, and what follows from each batch.

    A running variance is of samples: torch, and whoever exports from it, counts one element less.
    """

    constants: dict[str, Constant] = field(default_factory=dict)
    running: dict[str, tuple[str, float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, by_batch: Graph) -> "_Statistics":
        """Those of a graph, and what a graph `with_batch_statistics` calls them."""
        found = cls()
        made = {node.outputs[0]: node for node in by_batch.nodes if node.outputs}
        for node in graph.nodes:
            if node.operator == "BatchNormalization" and not node.domain:
                found._add(graph, node, made[node.outputs[0]].outputs[1:])
        return found

    def refuse_shared(self, weights: Collection[str]) -> None:
        """Statistics that are weights as well, as a file may have them that keeps equals once."""
        for name in weights:
            if name in self.constants:
                raise _shared(name)

    def _add(self, graph: Graph, node: Node, batch: Sequence[str]) -> None:
        momentum = node.attributes.get("momentum", 0.9)
        assert isinstance(momentum, float)
        shape = graph.value(node.inputs[0]).static_shape
        count = element_count(shape) // shape[1]
        factors = 1.0, count / max(count - 1, 1)
        for name, statistic, factor in zip(node.inputs[3:5], batch, factors, strict=True):
            constant = graph.constants.get(name)
            if name in self.constants:
                raise _shared(name)
            if constant is not None:
                self.constants[name] = constant
                self.running[name] = (statistic, momentum, (1 - momentum) * factor)


def _shared(name: str) -> InputError:
    return InputError(
        f"`{name}` is a running statistic and something else as well, so that training would "
        "change both: export the model with a tensor of its own for each."
    )
