"""Defines `train`, which makes a trainer from a model, a loss and an optimizer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from tightship.public_calls import explains_memory

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import ModelSource
    from tightship.graph.optimizer import Optimizer
    from tightship.training.joint import Differentiated
    from tightship.training.planned import Terms
    from tightship.training.step_graph import StepGraph
    from tightship.training.trainer import Save, Trainer


@explains_memory("training a model")
def train(
    model: "ModelSource",
    loss: "str | Callable[..., Any] | None",
    optimizer: "Optimizer",
    *,
    example_inputs: object = None,
    example_labels: object = None,
    output: str | None = None,
    labels: str = "labels",
    classes_axis: int | None = None,
    weights: Collection[str] | None = None,
    dropout: float | None = None,
    seed: int = 0,
    accumulate: int = 1,
    shapes: Mapping[str, Sequence[int] | int] | None = None,
    max_memory: str | int | None = None,
    recompute: float | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    threads: int = 1,
    without: Collection[str] = (),
) -> "Trainer":
    """Make a trainer of a model: plan a whole training step in one block of memory.

    Batch normalizations use statistics of the batch and update their running statistics; dropouts
    are active.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`, or its file; a
            traced function of jax; or a module of torch, flax or equinox, or a function of jax,
            with `example_inputs`.
        loss: `"cross_entropy"` of scores and labels, which are int64 of the scores' shape without
            the axis of classes, and -100 to be ignored; `"squared_error"`, the mean of an output's
            squared difference to its labels; or an output of the model that is a loss already. For
            a module also a function of its output and labels, or None if it returns its loss.
        optimizer: `Sgd` or `Adam`.
        example_inputs: Arguments of a module: a tensor, a tuple, or a dictionary by name. Their
            values are not used; the trainer is for their shapes.
        example_labels: Label or tuple of labels for a function as `loss`.
        output: The output that the loss applies to; needed if the model has several.
        labels: Name of the input that the loss compares the output with; `"labels"` by default.
        classes_axis: Axis of classes in the scores of a cross entropy: 1, or the last. Scores of
            three axes need it, such as (batch, length, classes) of texts; the default is axis 1.
        weights: Constants of floats to train; by default all except masks and single numbers that
            are not weights of a layer.
        dropout: Share of elements, from 0 to below 1, that every dropout sets to zero instead of
            its own ratio; None, the default, keeps the ratios. Dropouts with a `training_mode` of
            false drop nothing.
        seed: Seed of the dropouts: equal seeds drop the same elements, with any `threads`; 0 by
            default.
        accumulate: Number of steps whose gradients are averaged for one update: each is a call of
            `step` with a batch of its own. More than 1 takes the gradients' size besides the
            arena; 1 by default.
        shapes: Shapes by input, or lengths by dimension, as for `tightship.plan`.
        max_memory: Most memory that the process may gain, as `"2GiB"` or in bytes; None, the
            default, sets no limit.
        recompute: Share of the operations that a step may compute again to save memory; with
            `max_memory` only as many as the limit needs. None, the default, allows any number
            with `max_memory`, and none without it.
        precision: Type that activations and their gradients are stored in while they wait for a
            later kernel: `"float32"`, the default, or `"bfloat16"`, in half of the bytes. Weights,
            sums and updates are float32 in both. With `"bfloat16"`, products round what they
            multiply to it if the processor multiplies bfloat16 (AVX-512 BF16, AMX).
        threads: Threads of each kernel; 1 by default.
        without: Passes to leave out, for comparison; `"reorder"` keeps the order of steps,
            `"tiles"` keeps gradients whole.

    Returns:
        A trainer, which holds the weights and runs steps.

    Raises:
        FormatError, GraphError: The file is not an ONNX model; an operator has no gradient.
        InputError: An argument does not fit, no weights are floats, or a shape is symbolic.
        CapacityError: The step takes more than `max_memory`.
        OutOfMemoryError: The system refuses the memory.
    """
    from tightship.training.model_step import StepSource, model_step
    from tightship.training.step_graph import Objective

    terms = terms_of(threads, without, max_memory, recompute, precision)
    name = loss if isinstance(loss, str) else ""
    objective = Objective(name, output, labels, weights, classes_axis, dropout, seed, accumulate)
    source = StepSource(model, loss, objective, shapes, threads, example_inputs, example_labels)
    step, save = model_step(source, optimizer)
    return train_graph(step, terms, save)


def terms_of(
    threads: int,
    without: Collection[str],
    max_memory: str | int | None,
    recompute: float | None,
    precision: str,
) -> "Terms":
    """Return the limits of a step."""
    from tightship.deprecated import current_passes
    from tightship.quantity import parse_bytes
    from tightship.training.planned import Terms

    limit = None if max_memory is None else parse_bytes(max_memory, "max_memory")
    return Terms(threads, current_passes(without), limit, recompute, precision)


@explains_memory("training a model")
def train_joint(
    made: "Differentiated",
    optimizer: "Optimizer",
    *,
    seed: int = 0,
    accumulate: int = 1,
    max_memory: str | int | None = None,
    recompute: float | None = None,
    precision: Literal["float32", "bfloat16"] = "float32",
    threads: int = 1,
    without: Collection[str] = (),
) -> "Trainer":
    """Make a trainer of a step that another framework differentiated.

    Args:
        made: The step, as `tightship.frontend.torch.training_graph` returns it.
        optimizer: `Sgd` or `Adam`.
        accumulate: As for `train`.
        seed: As for `train`.
        max_memory: As for `train`.
        recompute: As for `train`.
        precision: As for `train`.
        threads: As for `train`.
        without: As for `train`.

    Raises:
        CapacityError, GraphError, OutOfMemoryError: As `train`.
        InputError: An argument does not fit, or the new value of a buffer cannot be written over
            the buffer.
    """
    from tightship.training.joint import joint_step, refuse_saving

    terms = terms_of(threads, without, max_memory, recompute, precision)
    return train_graph(joint_step(made, optimizer, seed, accumulate), terms, refuse_saving)


@explains_memory("training a model")
def train_graph(step: "StepGraph", terms: "Terms", save: "Save") -> "Trainer":
    """Make a trainer of a graph that already contains backward pass and updates.

    Args:
        step: The graph, with the outputs that are written over inputs.
        terms: Limits of the step.
        save: Implements `Trainer.save`: called with weights by name, and a path.

    Raises:
        CapacityError, GraphError, OutOfMemoryError: As `train`.
    """
    from tightship.graph.absent import refuse_absent
    from tightship.training.planned import planned
    from tightship.training.trainer import Trainer

    refuse_absent((*step.held.items(), *step.graph.constants.items()))

    return Trainer(planned(step, terms), save)
