"""Training steps: forward and backward path of a loss in one graph, by AOT autograd."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightship.deprecated import takes_old_parameters
from tightship.errors import GraphError
from tightship.graph import Constant, Graph
from tightship.public_calls import public_call

if TYPE_CHECKING:
    import torch

    Loss = Callable[..., torch.Tensor]


@dataclass(frozen=True, slots=True)
class TrainingGraph:
    """Training step, differentiated by torch's autograd.

    Attributes:
        graph: Reads inputs, targets, parameters and the buffers that it changes; its outputs are
            `loss`, the gradients and the new buffers.
        parameters: Inputs whose gradients it computes, by their names in the module.
        gradients: Outputs, the gradient `d(NAME)` of each parameter.
        buffers: Inputs that the step changes, each with the output that replaces it.
        state: Current parameters and changed buffers, which refer to torch's memory.
    """

    graph: Graph
    parameters: tuple[str, ...]
    gradients: tuple[str, ...]
    buffers: Mapping[str, str]
    state: Mapping[str, Constant]

    @property
    def loss(self) -> str:
        """Name of the output that is differentiated, a scalar."""
        return "loss"


@public_call
@takes_old_parameters("training_graph")
def training_graph(
    module: "torch.nn.Module",
    inputs: "Sequence[torch.Tensor]",
    loss: "Loss | None" = None,
    labels: "Sequence[torch.Tensor]" = (),
) -> TrainingGraph:
    """Return a training step of a module, forward and backward path in one graph.

    The module is exported by `torch.export` in its current mode, and differentiated by AOT autograd
    as `torch.export` does for joint graphs (`joint_loss_index` of its decomposition, which keeps
    names and records what is written back). Writes in place become values, running statistics
    outputs, and attention products and a softmax.

    Parameters without `requires_grad` are constants; tied ones have the first of their names.

    Args:
        module: Module to train.
        inputs: Example inputs; the graph is for their shapes.
        loss: Function of the module's output and labels that returns a scalar; None if the module
            returns it.
        labels: Example labels; the graph's last inputs.

    Raises:
        GraphError: The loss is not a scalar, nothing is trained, an operator has no translation, or
            running statistics are averages of all batches (`momentum=None`).
        InputError: A parameter is not in the processor's memory.
    """
    inputs, labels = tuple(inputs), tuple(labels)
    given = StepInputs(
        (*_arguments(module.forward, len(inputs), "input"), *label_names(loss, len(labels))),
        (*inputs, *labels),
        len(inputs),
        lambda called, tensors: called(*tensors),
    )
    return differentiated(module, given, loss)


@dataclass(frozen=True, slots=True)
class StepInputs:
    """Inputs of a training step.

    Attributes:
        names: Name of each input and label.
        tensors: Examples of them.
        count: Number of inputs; the others are labels.
        call: Calls a module with the inputs.
    """

    names: "Sequence[str]"
    tensors: "Sequence[torch.Tensor]"
    count: int
    call: "Callable[[torch.nn.Module, Sequence[torch.Tensor]], torch.Tensor]"


def differentiated(
    module: "torch.nn.Module", given: StepInputs, loss: "Loss | None"
) -> TrainingGraph:
    """Return a training step, as `training_graph` does.

    Args:
        module: Module to train.
        given: Inputs and labels; the first inputs of the graph.
        loss: As for `training_graph`.

    Raises:
        GraphError, InputError: As from `training_graph`.
    """
    from torch.export.graph_signature import OutputKind

    from tightship.frontend.torch.decompose import joint, tell_sources
    from tightship.frontend.torch.table import TRANSLATIONS_OF_TRAINING
    from tightship.frontend.torch.tensor import constant_of
    from tightship.frontend.torch.translate import Translator

    _refuse_averages(module)
    program = _exported(module, given, loss)
    try:
        found = joint(program)
    except (AssertionError, RuntimeError) as error:
        raise GraphError(
            f"Autograd refuses the step of `{type(module).__name__}`: "
            f"{str(error).splitlines()[0]}. "
            "Set `requires_grad` to False where a parameter does not lead to the loss."
        ) from error
    tell_sources(program, found)
    names = {
        **{f"given_{place}": name for place, name in enumerate(given.names)},
        **_names_of_state(module, program.state_dict),
    }
    graph = Translator(found, TRANSLATIONS_OF_TRAINING, lambda n: names.get(n, n)).graph()
    specs = found.graph_signature.output_specs
    trained = [spec.target for spec in specs if spec.kind is OutputKind.GRADIENT_TO_PARAMETER]
    changed = [spec.target for spec in specs if spec.kind is OutputKind.BUFFER_MUTATION]
    return TrainingGraph(
        graph,
        tuple(names[target] for target in trained),
        tuple(f"d({names[target]})" for target in trained),
        {names[target]: f"{names[target]}.updated" for target in changed},
        {names[i]: constant_of(found.state_dict[i], names[i]) for i in (*trained, *changed)},
    )


def _refuse_averages(module: "torch.nn.Module") -> None:
    """Refuse averages of all batches, whose factor depends on the number of batches seen."""
    import torch

    normalizations = torch.nn.modules.batchnorm._BatchNorm
    for name, each in module.named_modules():
        is_tracking = isinstance(each, normalizations) and each.training
        if is_tracking and each.track_running_stats and each.momentum is None:
            raise GraphError(
                f"`{name or type(module).__name__}` ({type(each).__name__}) has no momentum, so "
                "that its running statistics are averages of all batches; give it a number, such "
                "as `momentum=0.1`."
            )


def _exported(
    module: "torch.nn.Module", given: StepInputs, loss: "Loss | None"
) -> "torch.export.ExportedProgram":
    """Export the module and its loss; only inputs that are read get gradients.

    Raises:
        GraphError: The result is not a scalar, or no parameter is trained.
    """
    import torch
    from torch.export.graph_signature import InputKind

    step, count = given, given.count

    class Step(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.module = module
            self.training = module.training

        def forward(self, *given: torch.Tensor) -> torch.Tensor:
            result = step.call(self.module, given[:count])
            return result if loss is None else loss(result, *given[count:])

    program = torch.export.export(Step(), tuple(given.tensors))
    program.graph.eliminate_dead_code()
    results = program.graph.output_node().args[0]
    shapes = [tuple(each.meta["val"].shape) for each in results]
    if shapes != [()]:
        raise GraphError(
            f"The loss gives tensors of the shapes {shapes}; it must give one scalar, such as the "
            "mean over the samples."
        )
    read = 0
    for spec, node in zip(
        program.graph_signature.input_specs, program.graph.find_nodes(op="placeholder"), strict=True
    ):
        if not node.users:
            node.meta["val"] = node.meta["val"].detach()
        read += spec.kind is InputKind.PARAMETER and node.meta["val"].requires_grad
    if not read:
        raise GraphError(
            f"`{type(module).__name__}` has no parameter that is trained; at least one must be "
            "read and have `requires_grad`."
        )
    return program


def label_names(loss: "Loss | None", count: int) -> list[str]:
    """Return the names of labels: those of the arguments of the loss after the first."""
    if loss is None:
        return []
    function = getattr(loss, "forward", loss)  # of a module, which is called with anything
    return _arguments(function, count + 1, "target")[1:]


def _arguments(function: Callable[..., object], count: int, stem: str) -> list[str]:
    """Return the names of a function's first arguments; numbered ones for variadic arguments."""
    kinds = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    named = [
        each.name for each in inspect.signature(function).parameters.values() if each.kind in kinds
    ]
    return [*named, *(f"{stem}.{place}" for place in range(len(named), count))][:count]


def _names_of_state(
    module: "torch.nn.Module", state: "Mapping[str, torch.Tensor]"
) -> dict[str, str]:
    """Return the module's names of parameters and buffers; the first name of tied ones."""
    found = {id(each): name for name, each in module.named_parameters()}
    return {n: found.get(id(held), n.removeprefix("module.")) for n, held in state.items()}
