"""Reads, places and measures a model before anything of it is loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard, Union, cast

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import (
    Declared,
    ModelSource,
    OpenedModule,
    Settings,
    TracedFunction,
    compile_rewritten,
    name_of,
    prepare,
)
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.plan.footprint import counted_nodes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.weights.weight_store import Progress
from tightship.errors import InputError
from tightship.frontend import PROGRAM_SUFFIX
from tightship.frontend.model_file import open_model_bytes, open_model_file
from tightship.frontend.onnx import OnnxFile
from tightship.graph import Graph
from tightship.loading.budget import PlanForBatch, check_budget
from tightship.loading.input_shapes import Given, input_shapes

if TYPE_CHECKING:
    from tightship.engine.lower.steps.options import Choice
    from tightship.frontend.jax import JaxProgram
    from tightship.frontend.torch import TorchProgram

NO_BOUNDS = Bounds()

OpenedModel = Union[OnnxFile, "TorchProgram", "JaxProgram"]


def open_model(model: ModelSource) -> OpenedModel:
    """Parse a model file or its bytes, or translate a program of torch or jax.

    Raises:
        InputError: The model is none of these.
    """
    if isinstance(model, bytes):
        return open_model_bytes(model)
    if isinstance(model, str | PathLike):
        path = Path(model)
        if path.suffix == PROGRAM_SUFFIX:
            from tightship.frontend.torch import open_program

            return open_program(path)
        return open_model_file(path)
    if isinstance(model, OpenedModule):
        return cast("OpenedModel", model)
    if isinstance(model, TracedFunction):
        from tightship.frontend.jax import JaxProgram

        return JaxProgram(model)
    if type(model).__name__ != "ExportedProgram":  # importing its class takes torch a second
        raise InputError(
            "A model is a path, the bytes of an ONNX file, a program of `torch.export`, a traced "
            "function of jax, or a module or function of these with `example_inputs`, not "
            f"{type(model).__name__}; an `onnx.ModelProto` is given as "
            "`model.SerializeToString()`."
        )
    from tightship.frontend.torch import TorchProgram

    return TorchProgram(model)


def with_open_batch(source: OpenedModel, shapes: Mapping[str, Sequence[int]] | None) -> OpenedModel:
    """Open the batch that an ONNX file fixes; other programs stay as they are.

    Args:
        source: The model.
        shapes: Shapes of the inputs that the file leaves open.

    Raises:
        FixedBatchError: A node does not keep the samples of a batch apart.
    """
    return source.with_open_batch(shapes) if isinstance(source, OnnxFile) else source


def is_onnx(model: ModelSource) -> TypeGuard[str | PathLike[str] | bytes]:
    """Return whether the model is an ONNX or GGUF file or its bytes."""
    if isinstance(model, str | PathLike):
        return Path(model).suffix != PROGRAM_SUFFIX
    return isinstance(model, bytes)


def open_for(model: ModelSource, settings: Settings) -> tuple[OpenedModel, Settings]:
    """Open a model, and return it with the settings that have shapes by input only.

    A decoder needs none: it gets those of a single step.

    Raises:
        FormatError: The model cannot be read.
        InputError: The shapes do not fit the model's inputs.
    """
    source = open_model(model)
    return source, replace(settings, shapes=shapes_for(source, settings.shapes))


def shapes_for(source: OpenedModel, given: Given | None) -> dict[str, tuple[int, ...]] | None:
    """Return shapes by input for what a caller gives; those of a single step for a decoder.

    Raises:
        InputError: The shapes do not fit the model's inputs.
    """
    left = {name: shape for name, shape in source.declared.items() if name not in (given or {})}
    if isinstance(source, OnnxFile) and is_open(left):
        from tightship.loading.decoder_shapes import decoder_shapes  # most callers give all shapes

        step = decoder_shapes(source, given or {})
        if step is not None:
            return step
        given = given or source.usual_lengths
    return input_shapes(source.declared, given) if given else None


def read_graph(model: ModelSource, settings: Settings) -> Graph:
    """Read the graph of a model, as for `load`."""
    source, settings = open_for(model, settings)
    return source.graph(settings.input_shapes)


def is_open(declared: Declared) -> bool:
    """Whether a file leaves any length of an input open."""
    return any(
        shape is None or not all(isinstance(dimension, int) for dimension in shape)
        for shape in declared.values()
    )


def anew(source: OpenedModel, name: str, settings: Settings) -> CompiledModel:
    """Compile the model from its file for the shapes of its settings."""
    packed: PackedBefore | None = {} if is_open(source.declared) else None
    return prepare(source.graph(settings.input_shapes), name, settings, packed)


def measure(
    model: ModelSource,
    settings: Settings,
    file: str | PathLike[str],
    bounds: Bounds = NO_BOUNDS,
    progress: Progress | None = None,
) -> Settings:
    """Add the choice that a file holds for these settings; measure and store it if there is none.

    Args:
        model: Path of an ONNX file, or its bytes.
        settings: Settings that the choice depends on besides the model.
        file: JSON file of choices; need not exist yet.
        bounds: Limits of measuring; a plan without a choice must fit.
        progress: Function called with the candidates measured so far and in all.

    Raises:
        CapacityError: The plan without a choice exceeds the bounds; nothing has been run.
        FormatError: `file` is not a file of choices.
        InputError: An input has no fixed shape to measure with.
    """
    from tightship.engine.lower.selection import rewritten
    from tightship.loading.tuning import Choices, candidates, choice_key, fastest

    source, settings = open_for(model, settings)
    graph = source.graph(settings.input_shapes)
    choices, key = Choices(Path(file)), choice_key(graph, settings)
    choice = choices.read().get(key)
    if choice is None:
        packed: PackedBefore | None = {} if is_open(source.declared) else None
        small, node_count = rewritten(graph, settings.without), counted_nodes(graph)

        def prepare_with(choice: "Choice | None") -> CompiledModel:
            chosen = replace(settings, choice=choice)
            return compile_rewritten(small, node_count, name_of(model), chosen, packed)

        usual = prepare_with(None)
        if bounds.limit_bytes is not None:
            check_limit(usual.plan, model, settings, bounds.limit_bytes, bounds.dynamic_bytes)
        choice = fastest(candidates(usual, prepare_with), bounds._replace(arenas=1), progress)
        choices.store(key, choice)
    return replace(settings, choice=choice)


def check_limit(
    plan: MemoryPlan,
    model: ModelSource,
    settings: Settings,
    limit_bytes: int,
    dynamic_bytes: int | None = None,
) -> None:
    """Check a model's plan against a limit; plans smaller batches to name one that fits.

    Raises:
        CapacityError: The plan exceeds the limit.
    """
    check_budget(plan, limit_bytes, dynamic_bytes, _batches(plan, model, settings))


def _batches(
    plan: MemoryPlan, model: ModelSource, settings: Settings
) -> tuple[int, PlanForBatch] | None:
    """Return the batch, and a function that plans another, if the caller chose one batch."""
    if not isinstance(model, str | PathLike | bytes):
        return None  # a program has one batch
    if not (settings.shapes or {}).keys() <= set(plan.inputs):
        _, settings = open_for(model, settings)
    shapes = settings.input_shapes
    batches = {shape[0] for name, shape in shapes.items() if shape and name in plan.inputs}
    if len(batches) != 1 or max(batches) < 2:
        return None
    batch = max(batches)

    def plan_for(smaller: int) -> MemoryPlan:
        resized = {name: (smaller, *shape[1:]) if shape else () for name, shape in shapes.items()}
        other = replace(settings, shapes=resized, choice=None)
        return anew(open_model(model), name_of(model), other).plan

    return batch, plan_for
