"""Makes the training step of a model: a file, a program, or a module with example inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.stored.container import holds_prepared
from tightship.errors import InputError
from tightship.frontend.modules import is_module, is_torch_module, jax_module, refuse_examples
from tightship.graph import Graph
from tightship.graph.backward import constants_read
from tightship.graph.optimizer import Optimizer
from tightship.loading.opening import read_graph
from tightship.training.joint import joint_step, refuse_saving
from tightship.training.save import saving
from tightship.training.step_graph import Objective, StepGraph, step_graph
from tightship.training.trainer import Save

Loss = str | Callable[..., Any] | None


@dataclass(frozen=True, slots=True)
class StepSource:
    """A model, and what its step is made for.

    Attributes:
        model: The model.
        loss: A name, or a function of the output and labels of a module; None if that returns its
            loss.
        objective: The rest of the objective; its `loss` counts where `loss` is a name.
        shapes: Shapes by input, or lengths by dimension.
        threads: Threads of each kernel.
        example_inputs: Arguments of a module.
        example_labels: Labels for the loss of a module.
    """

    model: ModelSource
    loss: Loss
    objective: Objective
    shapes: Mapping[str, Sequence[int | str] | int] | None = None
    threads: int = 1
    example_inputs: object = None
    example_labels: object = None

    @property
    def name(self) -> str:
        """Name of the model in reports."""
        return type(self.model).__name__ if is_module(self.model) else name_of(self.model)


def model_step(source: StepSource, optimizer: Optimizer) -> tuple[StepGraph, Save]:
    """Make a step, and a function that saves its weights.

    Raises:
        GraphError: The model cannot be read, or an operator has no gradient.
        InputError: Arguments do not fit each other or the model.
    """
    model = source.model
    if not is_module(model):
        return step_graph(_graph_of(source), source.objective, optimizer), saving(model)
    if source.shapes is not None:
        raise InputError(
            "`shapes` are not for a step of a module, whose lengths are those of `example_inputs`; "
            "give inputs of other shapes."
        )
    if source.example_inputs is None:
        raise InputError(
            f"`{source.name}` is a module without shapes of its own; give `example_inputs`: a "
            "tensor, a tuple of its arguments, or a dictionary of them by name."
        )
    make = _torch_step if is_torch_module(model) else _jax_step
    return make(source, optimizer), refuse_saving


def _graph_of(source: StepSource) -> Graph:
    model, loss = source.model, source.loss
    refuse_examples(model, source.example_inputs)
    if not isinstance(loss, str):
        raise InputError(
            f"`loss` is {'None' if loss is None else 'a function'}, which is for modules; for "
            f"`{name_of(model)}` give `cross_entropy`, `squared_error`, or the name of an output "
            "that is a loss."
        )
    if holds_prepared(model):
        raise InputError(
            f"`{name_of(model)}` is a prepared model, which is for inference only, because its "
            "weights are packed for its kernels. Give the ONNX file that it was prepared from."
        )
    return read_graph(model, Settings(source.shapes, source.threads))  # type: ignore[arg-type]


def _torch_step(source: StepSource, optimizer: Optimizer) -> StepGraph:
    from tightship.frontend.torch.module import module_step

    objective = source.objective
    for name, remedy in (
        ("output", "give a function as `loss` that chooses it"),
        ("weights", "set `requires_grad` of the others to False"),
        ("dropout", "set `p` of its dropouts"),
    ):
        if getattr(objective, name) is not None:
            raise InputError(f"`{name}` is not for a module of torch; {remedy}.")
    made = module_step(
        source.model,
        source.example_inputs,
        source.loss,
        example_labels=source.example_labels,
        labels=objective.labels,
        classes_axis=objective.classes_axis,
    )
    return joint_step(made, optimizer, objective.seed, objective.accumulate)


def _jax_step(source: StepSource, optimizer: Optimizer) -> StepGraph:
    objective, loss = source.objective, source.loss
    function = None if isinstance(loss, str) else loss
    module = jax_module(source.model, source.example_inputs)
    program, trained = module.module_loss(
        source.model, source.example_inputs, function, source.example_labels
    )
    graph = program.graph()
    if not isinstance(loss, str):
        objective = replace(objective, loss=graph.outputs[0])
    if objective.weights is None:
        read = constants_read(graph)
        objective = replace(objective, weights=[name for name in trained if name in read])
    return step_graph(graph, objective, optimizer)
