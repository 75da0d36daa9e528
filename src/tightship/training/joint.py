"""A training step whose backward path another framework has written, with updates behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from tightship.errors import InputError
from tightship.graph import Constant, Graph
from tightship.graph.backward import with_dropout
from tightship.graph.optimizer import Optimizer
from tightship.training.step_graph import StepGraph, Trained, updating_step


class Differentiated(Protocol):
    """A loss and its gradients, as `frontend.torch.training_graph` gives them."""

    @property
    def graph(self) -> Graph:
        """Forward and backward path."""

    @property
    def loss(self) -> str:
        """The output that is differentiated."""

    @property
    def parameters(self) -> Sequence[str]:
        """Inputs that are trained."""

    @property
    def gradients(self) -> Sequence[str]:
        """Outputs, a gradient of each."""

    @property
    def buffers(self) -> Mapping[str, str]:
        """Inputs that the step changes, and the output that is written over each."""

    @property
    def state(self) -> Mapping[str, Constant]:
        """What parameters and buffers are at first."""


def joint_step(
    made: Differentiated, optimizer: Optimizer, seed: int = 0, accumulate: int = 1
) -> StepGraph:
    """The step that `train_graph` runs: gradients are gone once their parameter has changed.

    Args:
        made: Forward and backward path.
        optimizer: How parameters change.
        seed: What dropouts draw by.
        accumulate: Runs whose gradients are averaged before they do.

    Raises:
        GraphError: A dropout's ratio is computed.
        InputError: What becomes of a buffer is computed by a node that does not read it.
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
    """There is no file to write anew.

    Raises:
        InputError: Always.
    """
    raise InputError(
        "The step has no file of its own; put `Trainer.weights()` into the module instead, or "
        "write them by `Trainer.save_checkpoint`."
    )


def _check_buffers(made: Differentiated) -> None:
    """Refuse what cannot be written over in place."""
    makers = {name: node for node in made.graph.nodes for name in node.writes}
    for before, after in made.buffers.items():
        node = makers[after]
        if before not in node.inputs:
            raise InputError(
                f"Buffer `{before}` is replaced by the result of node `{node.name}` "
                f"({node.operator}), which does not read it, so that it cannot be written over it; "
                "let the module add to it or scale it in one operation."
            )
