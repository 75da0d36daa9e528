"""Makes a training step from a backward pass that another framework wrote, and adds updates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from tightship.errors import InputError
from tightship.graph import Constant, Graph
from tightship.graph.backward import with_dropout
from tightship.graph.optimizer import Optimizer
from tightship.training.step_graph import StepGraph, Trained, updating_step


@runtime_checkable
class Differentiated(Protocol):
    """A loss and its gradients, as `frontend.torch.training_graph` returns them."""

    @property
    def graph(self) -> Graph:
        """Forward and backward pass."""

    @property
    def loss(self) -> str:
        """Output that is differentiated."""

    @property
    def parameters(self) -> Sequence[str]:
        """Inputs that are trained."""

    @property
    def gradients(self) -> Sequence[str]:
        """Outputs with the gradient of each parameter."""

    @property
    def buffers(self) -> Mapping[str, str]:
        """Inputs that the step changes, each with the output that is written over it."""

    @property
    def state(self) -> Mapping[str, Constant]:
        """Initial values of parameters and buffers."""


def joint_step(
    made: Differentiated, optimizer: Optimizer, seed: int = 0, accumulate: int = 1
) -> StepGraph:
    """Make the step that `train_graph` runs; each gradient dies when its parameter is updated.

    Args:
        made: Forward and backward pass.
        optimizer: Optimizer that updates the parameters.
        seed: Seed of the dropouts; 0 by default.
        accumulate: Number of runs whose gradients are averaged for one update; 1 by default.

    Raises:
        GraphError: The ratio of a dropout is computed by a node.
        InputError: The new value of a buffer is computed by a node that does not read the buffer.
    """
    _check_buffers(made)
    outputs = (made.loss, *made.buffers.values(), *made.gradients)
    graph, drops = with_dropout(replace(made.graph, outputs=outputs))
    trained = Trained({name: made.state[name] for name in made.parameters}, made.gradients)
    step = updating_step(graph, made.loss, trained, optimizer, accumulate)

    def with_buffers(part: StepGraph) -> StepGraph:
        return replace(
            part,
            held={**part.held, **{name: made.state[name] for name in made.buffers}},
            follows={**part.follows, **{after: before for before, after in made.buffers.items()}},
            weights=(*made.parameters, *made.buffers),
            dropout=(drops, seed),
        )

    gathering = step.gathering and with_buffers(step.gathering)
    return replace(with_buffers(step), gathering=gathering)


def refuse_saving(weights: object, path: object) -> None:  # noqa: ARG001 - a `Save`
    """Refuse `Trainer.save`, because the step did not come from an ONNX file.

    Raises:
        InputError: Always.
    """
    raise InputError(
        "The step did not come from an ONNX file; copy `Trainer.weights()` into the module, or "
        "save them by `Trainer.save_checkpoint`."
    )


def _check_buffers(made: Differentiated) -> None:
    """Refuse buffers that cannot be written over in place."""
    makers = {name: node for node in made.graph.nodes for name in node.writes}
    for before, after in made.buffers.items():
        node = makers[after]
        if before not in node.inputs:
            raise InputError(
                f"Buffer `{before}` is replaced by the result of node `{node.name}` "
                f"({node.operator}), which does not read the buffer, so the result cannot be "
                "written over it; let the module add to the buffer or scale it in one operation."
            )
