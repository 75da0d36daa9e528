"""Budgets of a training step: what it is made of, and its plan in another process."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from tightship.brief import brief
from tightship.errors import InputError
from tightship.frontend.snapshot import light
from tightship.graph import Constant
from tightship.graph.absent import is_absent
from tightship.graph.optimizer import Adam, Optimizer, Sgd
from tightship.loading.entry import plan
from tightship.training.model_step import StepSource, model_step
from tightship.training.planned import PRECISIONS
from tightship.training.step_graph import Objective, StepGraph
from tightship.training.step_plan import step_plan
from tightship.training.train import terms_of
from tightship.view.picture import Picture

OPTIMIZERS: Mapping[str, type[Adam] | type[Sgd]] = {"adam": Adam, "sgd": Sgd}


@brief
@dataclass(frozen=True, slots=True)
class Training:
    """Arguments of `tightship.plan` that make a budget one of a training step.

    Attributes:
        loss: A name, or for a module also a function of its output and labels, or None.
        optimizer: Optimizer, whose tensors count.
        example_labels: Labels for the loss of a module.
        classes_axis: Axis of classes in the scores of a cross entropy.
        accumulate: Steps whose gradients are averaged for one update.
        recompute: Share of the operations that a step may compute again.
        precision: `"float32"`, or `"bfloat16"` for values that wait in it.
    """

    loss: str | Callable[..., Any] | None
    optimizer: Optimizer
    example_labels: object = None
    classes_axis: int | None = None
    accumulate: int = 1
    recompute: float | None = None
    precision: Literal["float32", "bfloat16"] = "float32"


def optimizer_of(optimizer: object, momentum: float = 0.0) -> Optimizer:
    """Return an optimizer that is given as itself or by name.

    Args:
        optimizer: An optimizer, `"adam"` or `"sgd"`.
        momentum: Momentum of `"sgd"`; with one it keeps a velocity for each weight.

    Raises:
        InputError: It is none of these, or the momentum is not one of `"sgd"`.
    """
    if isinstance(optimizer, Optimizer):
        return optimizer
    if not isinstance(optimizer, str) or optimizer not in OPTIMIZERS:
        raise InputError(
            f"`optimizer` is {optimizer!r}; give `adam`, `sgd`, `tightship.Adam` or "
            "`tightship.Sgd`."
        )
    if not momentum:
        return OPTIMIZERS[optimizer]()
    if optimizer != "sgd":
        raise InputError(f"`momentum` is for the optimizer `sgd`, not `{optimizer}`.")
    return Sgd(momentum=momentum)


def precision_of(name: object) -> Literal["float32", "bfloat16"]:
    """Return the name of a precision.

    Raises:
        InputError: It is none.
    """
    for known in PRECISIONS:
        if name == known:
            return known
    names = " or ".join(map(repr, PRECISIONS))
    raise InputError(f"`precision` is {name!r}; it must be {names}.")


def light_step(
    model: Any,  # noqa: ANN401 - a module of a library that need not be installed
    shapes: Any,  # noqa: ANN401 - refused, with the reason
    threads: int,
    example_inputs: object,
    training: Training,
) -> tuple[StepGraph, str]:
    """Make the training step of a module, without the elements of its weights, and its name.

    Raises:
        GraphError, InputError: As from `tightship.plan`.
    """
    loss = training.loss
    objective = Objective(
        loss if isinstance(loss, str) else "",
        classes_axis=training.classes_axis,
        accumulate=training.accumulate,
    )
    source = StepSource(
        model, loss, objective, shapes, threads, example_inputs, training.example_labels
    )
    step, _ = model_step(source, training.optimizer)
    return _light(step), source.name


def _light(step: StepGraph) -> StepGraph:
    """Return a step that can be sent to another process: masks have elements, weights none."""

    def lighter(constants: Mapping[str, Constant], *, are_weights: bool) -> dict[str, Constant]:
        return {
            name: light(name, each, is_weight=are_weights or is_absent(each))
            for name, each in constants.items()
        }

    graph = replace(step.graph, constants=lighter(step.graph.constants, are_weights=False))
    held = lighter(step.held, are_weights=True)
    gathering = None if step.gathering is None else _light(step.gathering)
    return replace(step, graph=graph, held=held, gathering=gathering)


def picture_of_step(step: StepGraph, name: str, threads: int, training: Training) -> Picture:
    """Return the plan of a step; of `training` it takes what does not change the step's graph."""
    terms = terms_of(threads, (), None, training.recompute, training.precision)
    return step_plan(step, terms, training.optimizer, name).picture()


def picture_of_training(
    model: str | bytes,
    shapes: Any,  # noqa: ANN401
    threads: int,
    training: Training,
) -> Picture:
    """Return the plan of a training step of a file."""
    return plan(
        model,
        shapes=shapes,
        threads=threads,
        loss=training.loss,
        optimizer=training.optimizer,
        classes_axis=training.classes_axis,
        accumulate=training.accumulate,
        recompute=training.recompute,
        precision=training.precision,
    ).picture()
