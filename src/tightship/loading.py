"""`plan` and `load`: from a model file to what it takes, and to a model that takes it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tightship.budget import PlanForBatch, arenas_within, check_budget
from tightship.engine.executable import Progress
from tightship.engine.memory_plan import MemoryPlan
from tightship.engine.prepare import ModelSource, Settings, name_of, prepare
from tightship.frontend.onnx import read, read_bytes
from tightship.graph import Graph
from tightship.model import Model
from tightship.quantity import parse_bytes


def plan(
    model: ModelSource,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    threads: int = 1,
    without: Collection[str] = (),
) -> MemoryPlan:
    """Every byte a model would take, from its file, without loading it.

    Args:
        model: Path of an ONNX file, or its bytes.
        shapes: Shapes for inputs whose dimensions are symbolic.
        threads: Threads of each kernel; the plan depends on it.
        without: Passes to leave out, to compare; `tightship.engine.lower.pass_names()`.

    Raises:
        FormatError: The file is not an ONNX model, or ends early.
        GraphError: Its graph is not valid, or has an operator nothing can run.
        InputError: `shapes`, `threads` or `without` do not fit.
    """
    settings = Settings(shapes, threads, without)
    return prepare(read_graph(model, settings), name_of(model), settings).plan


def load(
    model: ModelSource,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    max_memory: str | int | None = None,
    dynamic_memory: str | int | None = None,
    threads: int = 1,
    without: Collection[str] = (),
    progress: Progress | None = None,
) -> Model:
    """Load a model so that it runs in what its plan says.

    Args:
        model: Path of an ONNX file, or its bytes.
        shapes: Shapes for inputs whose dimensions are symbolic.
        max_memory: Most the process may gain by it, as `"512MiB"` or in bytes: weights, arena,
            inputs and outputs, runtime.
        dynamic_memory: Most that steps outside the plan may allocate in a run; enforced.
        threads: Threads of each kernel.
        without: Passes to leave out, to compare.
        progress: Called with bytes of weights packed, and of all weights.

    Raises:
        CapacityError: The plan exceeds `max_memory`, or has steps that allocate outside it and
            `dynamic_memory` does not bound them; nothing has been loaded.
        OutOfMemoryError: The system refuses the memory.
        FormatError, GraphError, InputError: As `plan`.
    """
    limit = None if max_memory is None else parse_bytes(max_memory)
    dynamic = None if dynamic_memory is None else parse_bytes(dynamic_memory)
    settings = Settings(shapes, threads, without)
    graph = read_graph(model, settings)
    prepared = prepare(graph, name_of(model), settings)
    if limit is not None:
        check_limit(prepared.plan, model, settings, limit, dynamic)
    return Model(prepared, arenas_within(prepared.plan, limit, dynamic or 0), dynamic, progress)


def read_graph(model: ModelSource, settings: Settings) -> Graph:
    """The graph of a model file, or of a model's bytes."""
    if isinstance(model, bytes):
        return read_bytes(model, shapes=settings.shapes)
    return read(model, shapes=settings.shapes)


def check_limit(
    plan: MemoryPlan,
    model: ModelSource,
    settings: Settings,
    limit_bytes: int,
    dynamic_bytes: int | None = None,
) -> None:
    """Refuse a model's plan that a limit does not hold; plans smaller batches to say what would.

    Raises:
        CapacityError: As `load`.
    """
    check_budget(plan, limit_bytes, dynamic_bytes, _batches(plan, model, settings))


def _batches(
    plan: MemoryPlan, model: ModelSource, settings: Settings
) -> tuple[int, PlanForBatch] | None:
    """The batch and how to plan another, where the caller chose a leading dimension."""
    shapes = settings.shapes or {}
    batches = {shape[0] for name, shape in shapes.items() if shape and name in plan.inputs}
    if len(batches) != 1 or max(batches) < 2:
        return None
    batch = max(batches)

    def plan_for(smaller: int) -> MemoryPlan:
        resized = {name: (smaller, *shape[1:]) if shape else () for name, shape in shapes.items()}
        other = replace(settings, shapes=resized)
        return prepare(read_graph(model, other), name_of(model), other).plan

    return batch, plan_for
