"""Makes the graph of a training step: a model, its loss, the backward pass and the updates."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.engine.lower import recognize_activation, recognize_normalization
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
"""Name of the input with the learning rate: a scalar of float32."""
SEED_MAX = 2**63 - 1
QUANTIZED = frozenset({DType.INT8, DType.UINT8})


@dataclass(frozen=True, slots=True)
class Objective:
    """The objective of a training.

    Attributes:
        loss: `cross_entropy`, `squared_error`, or an output of the model that is its loss.
        output: The output that the loss applies to; None if the model has one output.
        labels: Name of the input that the loss compares the output with.
        weights: Constants to train; None for `parameters`.
        classes_axis: Axis of classes in the scores of a cross entropy; None if it is unambiguous.
        dropout: Share of elements that all dropouts drop; None for the ratio of each.
        seed: Seed of the dropouts.
        accumulate: Number of runs whose gradients are averaged for one update.
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
                f"`dropout` is {self.dropout}; it must be a share of elements, from 0 to below 1."
            )


@dataclass(frozen=True, slots=True)
class StepGraph:
    """A graph that runs repeatedly; some of its outputs are inputs of the next run.

    Attributes:
        graph: The graph, including the nodes that update weights.
        loss: The output that is returned: a float of one element.
        held: Initial values of inputs that the caller does not provide.
        follows: For outputs that are written over such an input, the input; or another such output,
            if several are written over one input in turn.
        weights: Inputs among `held` that are the model's own: weights and running statistics.
        state: Inputs among `held` that the optimizer keeps: the weight, and the role.
        rate: The input with the learning rate, and its initial value.
        counter: The input that counts runs from 1, a scalar of int64; empty if there is none.
        norm: The output with the norm of all gradients; empty if there is none.
        dropout: The input with the seed and the number of the run, and the initial seed.
        labels: Labels that the loss accepts; None if the loss checks them itself.
        gathering: The step that runs instead except at each `accumulate`-th time: it adds gradients
            up in inputs among `held`, and changes no weight. None if each run updates weights.
        accumulate: Number of runs for one update.
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
        """Outputs that are complete before anything is written over."""
        return (self.loss, self.norm) if self.norm else (self.loss,)

    def followed(self, name: str) -> str:
        """Return the input that an output is written over."""
        while name in self.follows:
            name = self.follows[name]
        return name


def step_graph(graph: Graph, objective: Objective, optimizer: Optimizer) -> StepGraph:
    """Make the training step of a model.

    Raises:
        InputError: The objective names an unknown value, or weights are quantized.
        GraphError: An operator on the way to the loss has no gradient.
    """
    for simplify in (written_out, recognize_activation, recognize_normalization):
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
    """Weights with their initial values, and the gradient of each."""

    weights: Mapping[str, Constant]
    gradients: Sequence[str]


def updating_step(
    graph: Graph, loss: str, trained: Trained, optimizer: Optimizer, accumulate: int = 1
) -> StepGraph:
    """Add updates to a graph with its backward pass.

    Args:
        graph: A graph whose last outputs are the gradients.
        loss: The output that is returned.
        trained: Constants or inputs of the graph that are trained.
        optimizer: Optimizer that updates them.
        accumulate: Number of runs whose gradients are averaged for one update; 1 by default.

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
                    f"reads. The model has {', '.join(found) or 'none'}."
                )
        return _of_known_floats(graph, [name for name in found if name in set(chosen)])
    found = parameters(graph)
    for name, constant in graph.constants.items():
        if constant.dtype in QUANTIZED and len(constant.shape) > 1:
            raise InputError(
                f"`{name}` is quantized, and integers have no gradient: train the original model "
                "before its quantization, or name the floats to train as `weights`."
            )
    if not found:
        raise InputError("The model has no weights to train: no node reads a constant of floats.")
    return _of_known_floats(graph, found)


def _of_known_floats(graph: Graph, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, after checking that gradients have kernels for their types."""
    for name in names:
        if graph.constants[name].dtype is DType.BFLOAT16:
            raise InputError(
                f"`{name}` is bfloat16, for which gradients have no kernels: train the model in "
                "float32, and convert the file that `save` writes."
            )
    return tuple(names)


def _with_loss(graph: Graph, objective: Objective) -> tuple[Graph, str, Labels | None]:
    """Return the graph with its loss, the loss's name, and the labels that it accepts."""
    loss, output = objective.loss, objective.output
    if loss in LOSSES:
        if output is None:
            if len(graph.outputs) != 1:
                raise InputError(
                    f"The model has outputs {', '.join(graph.outputs)}; choose with `output` the "
                    f"one that the loss `{loss}` applies to."
                )
            (output,) = graph.outputs
        if output not in graph.outputs:
            raise InputError(
                f"Unknown output `{output}`; the outputs are {', '.join(graph.outputs)}."
            )
        scores = graph.value(output)
        if loss == "cross_entropy" and scores.is_static and len(scores.static_shape) > 1:
            labels = labels_of(graph, output, objective.labels, objective.classes_axis)
            made = with_cross_entropy(graph, output, objective.labels, classes_axis=labels.axis)
        else:
            labels, made = None, LOSSES[loss](graph, output, objective.labels)
        (shown,) = set(made.outputs) - set(graph.outputs)
        return made, shown, labels
    value = graph.value(loss)
    if loss not in graph.outputs:
        raise InputError(
            f"Unknown loss `{loss}`; choose {', '.join(f'`{name}`' for name in LOSSES)}, or an "
            f"output that is a loss: the model's are {', '.join(graph.outputs)}."
        )
    if (
        value.dtype is not DType.FLOAT32
        or not value.is_static
        or element_count(value.static_shape) != 1
    ):
        raise InputError(
            f"Output `{loss}` is not a loss: it must be one float32, and has shape {value.shape} "
            f"of {value.dtype.value if value.dtype else 'no tensor'}. Choose "
            f"{', '.join(f'`{name}`' for name in LOSSES)} as its loss."
        )
    return graph, loss, None


LOSSES = {"cross_entropy": with_cross_entropy, "squared_error": with_squared_error}
"""Losses by name: functions of a graph, one of its outputs and the name of the labels' input."""


@dataclass(slots=True)
class _Statistics:
    """Running statistics of batch normalizations, with the update that each batch makes.

    A running variance is that of samples, as in torch and its exports: the divisor is one less than
    the number of elements.
    """

    constants: dict[str, Constant] = field(default_factory=dict)
    running: dict[str, tuple[str, float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Graph, by_batch: Graph) -> "_Statistics":
        """Collect the statistics of a graph, with their names in the graph `by_batch`."""
        found = cls()
        made = {node.outputs[0]: node for node in by_batch.nodes if node.outputs}
        for node in graph.nodes:
            if node.operator == "BatchNormalization" and not node.domain:
                found._add(graph, node, made[node.outputs[0]].outputs[1:])
        return found

    def refuse_shared(self, weights: Collection[str]) -> None:
        """Refuse statistics that are weights as well: a file may store equal tensors once."""
        for name in weights:
            if name in self.constants:
                raise _shared(name)

    def _add(self, graph: Graph, node: Node, batch: Sequence[str]) -> None:
        momentum = node.number("momentum", 0.9)
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
        f"`{name}` is a running statistic and has another use as well, so training would change "
        "both: export the model with a separate tensor for each."
    )
