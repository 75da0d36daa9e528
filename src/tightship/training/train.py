"""`train`: from a model, a loss and an optimizer to a trainer."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from tightship.engine.allocation import memory_told

if TYPE_CHECKING:
    from tightship.engine.prepare import ModelSource
    from tightship.graph import Graph
    from tightship.graph.optimizer import Optimizer
    from tightship.training.joint import Differentiated
    from tightship.training.planned import Terms
    from tightship.training.step_graph import StepGraph
    from tightship.training.trainer import Save, Trainer


@memory_told("training a model")
def train(
    model: "ModelSource",
    loss: str,
    optimizer: "Optimizer",
    *,
    output: str | None = None,
    labels: str = "labels",
    classes_axis: int | None = None,
    weights: Collection[str] | None = None,
    dropout: float | None = None,
    seed: int = 0,
    accumulate: int = 1,
    shapes: Mapping[str, Sequence[int]] | None = None,
    max_memory: str | int | None = None,
    recompute: float = 0.0,
    threads: int = 1,
    without: Collection[str] = (),
) -> "Trainer":
    """Make a model ready to be trained: a step planned whole, in one block of memory.

    Batch normalizations are by the batch, and keep running statistics; dropouts drop.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`, or its file; or a
            traced function of jax.
        loss: `"cross_entropy"` of scores, and labels of int64 in the scores' shape without the axis
            of classes, -100 for what does not count; `"squared_error"`, the mean over an output
            and what it should be; or an output of the model that is a loss already.
        optimizer: `Sgd` or `Adam`.
        output: Which output the loss is of, where the model has several.
        labels: What the input is called that the loss compares the output with.
        classes_axis: Where classes are in the scores of a cross entropy: 1, or the last. Scores of
            three axes need it, as (batch, length, classes) of texts; others have them on axis 1.
        weights: Constants of floats to train; by default all but masks and single numbers that are
            no weights of a layer.
        dropout: Share of elements that every dropout of the model sets to zero, in place of the
            ratio that it has; 0 for none. Those with a `training_mode` of false drop nothing.
        accumulate: Steps whose gradients are averaged before weights change: each is a call of
            `step` with a batch of its own. More than 1 takes the gradients' size beside the arena.
        seed: What dropouts draw by: equal seeds drop the same elements, with any `threads`.
        shapes: Shapes for inputs whose dimensions are symbolic.
        max_memory: Most the process may gain, as `"2GiB"` or in bytes.
        recompute: Operations that a step may do again to take less, as a share of all; with
            `max_memory` no more than that needs.
        threads: Threads of each kernel.
        without: Passes to leave out, to compare; `"reorder"` leaves steps in their order,
            `"pieces"` gradients whole.

    Raises:
        FormatError, GraphError: The file is no ONNX model; an operator has no gradient.
        InputError: An argument does not fit, no weights are floats, or a shape is open.
        CapacityError: The step takes more than `max_memory`.
        OutOfMemoryError: The system refuses the memory.
    """
    from tightship.training.save import saving
    from tightship.training.step_graph import Objective, step_graph

    terms = _terms(threads, without, max_memory, recompute)
    objective = Objective(loss, output, labels, weights, classes_axis, dropout, seed, accumulate)
    step = step_graph(_graph_of(model, shapes, threads), objective, optimizer)
    return train_graph(step, terms, saving(model))


def _terms(
    threads: int, without: Collection[str], max_memory: str | int | None, recompute: float
) -> "Terms":
    from tightship.quantity import parse_bytes
    from tightship.training.planned import Terms

    limit = None if max_memory is None else parse_bytes(max_memory)
    return Terms(threads, without, limit, recompute)


def _graph_of(
    model: "ModelSource", shapes: Mapping[str, Sequence[int]] | None, threads: int
) -> "Graph":
    from tightship.engine.prepare import Settings, name_of
    from tightship.engine.stored.container import holds_prepared
    from tightship.errors import InputError
    from tightship.loading.opening import read_graph

    if holds_prepared(model):
        raise InputError(
            f"`{name_of(model)}` is a prepared file: a program of inference, whose weights are "
            "packed for its kernels. Give the ONNX file that it was prepared from."
        )
    return read_graph(model, Settings(shapes, threads))


@memory_told("training a model")
def train_joint(
    made: "Differentiated",
    optimizer: "Optimizer",
    *,
    seed: int = 0,
    accumulate: int = 1,
    max_memory: str | int | None = None,
    recompute: float = 0.0,
    threads: int = 1,
    without: Collection[str] = (),
) -> "Trainer":
    """Make a step that another framework differentiated ready to be run.

    Args:
        made: The step, as `tightship.frontend.torch.training_graph` gives it.
        optimizer: `Sgd` or `Adam`.
        accumulate: As for `train`.
        seed: As for `train`.
        max_memory: As for `train`.
        recompute: As for `train`.
        threads: As for `train`.
        without: As for `train`.

    Raises:
        CapacityError, GraphError, OutOfMemoryError: As `train`.
        InputError: An argument does not fit, or what becomes of a buffer cannot be written over it.
    """
    from tightship.training.joint import joint_step, refuse_saving

    terms = _terms(threads, without, max_memory, recompute)
    return train_graph(joint_step(made, optimizer, seed, accumulate), terms, refuse_saving)


@memory_told("training a model")
def train_graph(step: "StepGraph", terms: "Terms", save: "Save") -> "Trainer":
    """A trainer of a graph that holds backward path and updates already.

    Args:
        step: The graph, and which of its outputs are written over which of its inputs.
        terms: What it may take.
        save: Called with weights by name and a path where `Trainer.save` is.

    Raises:
        CapacityError, GraphError, OutOfMemoryError: As `train`.
    """
    from tightship.training.planned import planned
    from tightship.training.trainer import Trainer

    return Trainer(planned(step, terms), save)
