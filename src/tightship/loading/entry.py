"""`plan` and `load`: from a model to its memory plan, and to a model that runs in it.

Modules that read, lower and plan are imported only for models that are not prepared.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, cast

from tightship.engine.activations import with_precision
from tightship.engine.arenas.retention import Retention
from tightship.engine.cache.bounds import Bounds
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.stored.container import holds_prepared
from tightship.engine.weights.weight_store import Progress
from tightship.errors import InputError
from tightship.model import Model
from tightship.public_calls import explains_memory
from tightship.quantity import parse_bytes

if TYPE_CHECKING:
    from tightship.engine.arenas.arena_group import ArenaGroup
    from tightship.engine.compile.compile_graph import ModelSource, Shapes
    from tightship.graph import Graph
    from tightship.graph.open_graphs import OpenGraphs
    from tightship.graph.optimizer import Optimizer
    from tightship.resource import SharedArenaPool

PREPARED = "is for a model that is not prepared, as a prepared one has its plan; leave it out"
"""Reason for which prepared models refuse some arguments."""
ARENAS_MAX = 64
"""Arenas that a model may have at once if no limit allows fewer."""


@explains_memory("planning a model")
def plan(
    model: "ModelSource",
    example_inputs: object = None,
    *,
    shapes: Mapping[str, Sequence[int | str] | int] | None = None,
    threads: int | None = None,
    workers: int | None = None,
    workers_memory: str | int | None = None,
    without: Collection[str] = (),
    activations: Literal["float32", "int8"] | None = None,
    tune: str | PathLike[str] | None = None,
    loss: "str | Callable[..., Any] | None" = None,
    optimizer: "Optimizer | None" = None,
    example_labels: object = None,
    classes_axis: int | None = None,
    accumulate: int = 1,
    max_memory: str | int | None = None,
    recompute: float | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
) -> MemoryPlan:
    """Plan every byte that a model would take, without loading it; with an optimizer, in training.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`, or a traced function
            of jax; path of a prepared model, which contains its plan; or a module of torch, flax or
            equinox, or a function of jax, with `example_inputs`. Weights without memory (torch's
            device `meta`, `FakeTensor`, `jax.ShapeDtypeStruct`) get none.
        example_inputs: Arguments of a module: a tensor, a tuple, or a dictionary by name. Their
            values are not used.
        shapes: Shapes by input, or lengths by the name of a dimension, for inputs whose dimensions
            are symbolic: `{"ids": (1, 128)}` or `{"batch": 1, "sequence": 128}`. For a module of
            torch they replace those of the examples; a text leaves a length open under that name:
            `{"ids": ("batch", 128)}`.
        threads: Threads of each kernel, on which the plan depends; by default one, or as the model
            was prepared for.
        workers: Independent steps that run at once, each on one thread; by default one, or as the
            model was prepared for. Three kinds of plans are compared: that for one worker, with
            waits that make it safe; one for any order; and those in which a step runs ahead only
            within a window. The one with the shortest time by operations is taken, and of nearly
            equal ones the smallest; see `MemoryPlan.concurrency`.
        workers_memory: Most by which the arena may exceed that for one worker, such as `"1MiB"`, or
            in bytes; by default as much as the fastest plan needs.
        without: Passes to leave out, for comparison;
            `tightship.engine.lower.pipeline.pass_names()`.
        activations: Type that matrices in blocks of a GGUF file (all types but F32, F16 and BF16)
            are multiplied by: `"int8"` rounds activations in blocks of 32, of 16 for Q6_K, which is
            faster and less exact; by default `"float32"`, or as the model was prepared for.
        tune: File of measured choices. If it has none for this model, the model is run to measure
            one, in no more memory than without, and the choice is stored. A choice never adds
            memory. None chooses by a table, and reads no file.
        loss: Loss of a training step, as for `train`.
        optimizer: `Sgd` or `Adam`: plan the step that `train` runs, with all that it keeps.
        example_labels: As for `train`.
        classes_axis: As for `train`.
        accumulate: As for `train`.
        max_memory: Most memory of a training step, as for `train`; or what `load` will be given
            with the same `workers`, to which the plan keeps if one for one worker does.
        recompute: Share of a training step that may be computed again, as for `train`.
        precision: Type that products by constant weights multiply in: `"bfloat16"` rounds both
            operands, adds up in float32 and holds half the weights, which is faster and less exact;
            for processors with AVX-512 BF16. By default `"float32"`, or as the model was prepared
            for. With an optimizer the type that a training step stores values in, as for `train`.

    Raises:
        CapacityError: A training step takes more than `max_memory`.
        FormatError: The file is not an ONNX model, or ends early; `tune` is not a file of choices.
            A prepared model is damaged, or was made for another environment.
        GraphError: The graph is not valid, or has an operator that no kernel can run.
        InputError: An argument does not fit the model or another.
    """
    if optimizer is not None:
        from tightship.training.model_step import StepSource
        from tightship.training.step_graph import Objective
        from tightship.training.step_plan import model_step_plan
        from tightship.training.train import terms_of

        unused = {"activations": activations, "tune": tune, "workers": workers,
                  "workers_memory": workers_memory}  # fmt: skip
        _refuse(unused, "has no effect on a training step; leave it out, or `optimizer`")
        name = loss if isinstance(loss, str) else ""
        objective = Objective(name, classes_axis=classes_axis, accumulate=accumulate)
        count = 1 if threads is None else threads
        step = StepSource(model, loss, objective, shapes, count, example_inputs, example_labels)
        terms = terms_of(count, without, max_memory, recompute, precision or "float32")
        return model_step_plan(step, terms, optimizer)
    limit = None if (workers or 1) > 1 else max_memory
    of_step = {"loss": loss, "example_labels": example_labels, "classes_axis": classes_axis,
               "accumulate": None if accumulate == 1 else accumulate,
               "max_memory": limit, "recompute": recompute}  # fmt: skip
    why = "is for a plan of a training step; give `optimizer` too, such as `tightship.Adam(1e-3)`"
    _refuse(of_step, why)
    without = _passes(without)
    source, lengths = _opened(model, example_inputs, shapes)
    if holds_prepared(source):
        from tightship.loading.restoring import Asked, plan_prepared

        _refuse({"workers_memory": workers_memory}, PREPARED)
        asked = Asked(lengths, threads, without, activations, workers, precision)
        return plan_prepared(_untuned_path(source, tune), asked)
    from tightship.loading.apart import plan_new
    from tightship.loading.settings import settings_of

    without = with_precision(_chosen(source, without, activations), precision)
    most = None if max_memory is None else parse_bytes(max_memory, "max_memory")
    settings = settings_of(
        lengths, threads, without, (workers, workers_memory), most, {"tune": tune}
    )
    return plan_new(source, settings, tune)


@explains_memory("loading a model")
def load(
    model: "ModelSource",
    example_inputs: object = None,
    *,
    shapes: Mapping[str, Sequence[int | str] | int] | None = None,
    max_memory: str | int | None = None,
    dynamic_memory: str | int | None = None,
    threads: int | None = None,
    workers: int | None = None,
    workers_memory: str | int | None = None,
    without: Collection[str] = (),
    activations: Literal["float32", "int8"] | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
    programs: int = 32,
    program_memory: str | int = "256MiB",
    idle_s: float | None = 2.0,
    idle_memory: str | int = "2MiB",
    pool_budget: str | int | None = None,
    arena_pool: "SharedArenaPool | ArenaGroup | None" = None,
    tune: str | PathLike[str] | None = None,
    share: bool = False,
    keep_programs: bool = True,
    progress: Progress | None = None,
) -> Model:
    """Load a model so that it runs in the memory of its plan.

    Another process plans an ONNX file of fixed shapes. A process that has imported onnx, or has no
    room for a second one, plans the file itself and takes `MemoryPlan.here_bytes`.

    Args:
        model: As for `plan`, but no weights may lack memory; all processes that load a prepared
            model share its weights.
        example_inputs: As for `plan`.
        shapes: As for `plan`; unprepared models take others too when they run.
        max_memory: Most memory the process may gain by it: `"512MiB"`, or bytes.
        dynamic_memory: Most that steps outside the plan may allocate in a run; enforced.
        threads: Threads of each kernel; by default one, or as the model was prepared for.
        workers: Independent steps that `Model.run` runs at once, as for `plan`. The plan keeps to
            `max_memory` if one for one worker does. Sessions have one worker.
        workers_memory: As for `plan`.
        without: Passes to leave out, for comparison.
        activations: As for `plan`.
        precision: Type that products by constant weights multiply in, as for `plan`.
        programs: Input shapes that the model keeps programs for, if the file leaves shapes open;
            the least recently used goes first, and all but one of those that came once.
        program_memory: Most that these may take besides packed weights.
        idle_s: Seconds after which unneeded arena memory is given back; None keeps it.
        idle_memory: Arena memory to keep however long idle, if it is more than `shapes` need.
        pool_budget: Most to keep between runs for steps outside the plan, 64 MiB by default.
        arena_pool: Arenas that several processes, or models of this one, share.
        tune: File of measured choices, as for `plan`; the choice is for `shapes` only.
        share: Whether to prepare an ONNX file once for this user, in `TIGHTSHIP_CACHE_DIR`, and map
            that: one copy of the weights. If that fails, a `RuntimeWarning` says why, and the model
            is loaded unshared.
        keep_programs: Whether to keep programs of a GGUF file for later processes of this user, in
            `TIGHTSHIP_CACHE_DIR`; the weights stay in the file, but for a copy of Q4_0 and Q8_0 as
            kernels read them, which processes map. If that fails, nothing is said.
        progress: Function called with the bytes of weights packed so far and in all.

    Raises:
        CapacityError: The plan exceeds a limit; nothing has been loaded.
        OutOfMemoryError: The system refuses the memory.
        FormatError, GraphError, InputError: The errors of `plan`.
    """
    without = _passes(without)
    retention = Retention(idle_s, parse_bytes(idle_memory, "idle_memory"))
    bounds = _bounds(max_memory, dynamic_memory, programs, program_memory, retention, arena_pool)
    bounds = _pooled(bounds, pool_budget)
    source, lengths = _opened(model, example_inputs, shapes)
    if holds_prepared(source):
        from tightship.loading.restoring import Asked, load_prepared

        path = _untuned_path(source, tune)
        _refuse({"workers_memory": workers_memory}, PREPARED)
        asked = Asked(lengths, threads, without, activations, workers, precision)
        return load_prepared(path, asked, bounds)
    from tightship.loading.settings import settings_of

    without = with_precision(_chosen(source, without, activations), precision)
    settings = settings_of(
        lengths, threads, without, (workers, workers_memory), _planned(bounds), {"tune": tune}
    )
    if share:
        from tightship.loading.shared import load_shared

        shared = load_shared(source, settings, bounds, tune, progress)
        if shared is not None:
            shared._came_from(source)
            return shared
    keep = loaded = None
    if keep_programs and tune is None and settings.workers == 1 and _is_gguf(model):
        from tightship.loading.kept.model import load_kept

        keep, loaded = load_kept(model, settings, bounds, progress)
    if loaded is None:
        from tightship.loading.apart import load_new

        loaded = load_new(source, settings, bounds, tune, progress, keep)
    loaded._came_from(source)
    return loaded


@explains_memory("loading a model")
def load_graph(
    graph: "Graph",
    name: str,
    threads: int = 1,
    arenas: "ArenaGroup | None" = None,
    like: Model | None = None,
    progress: Progress | None = None,
) -> Model:
    """Load a graph whose shapes are all known.

    Args:
        graph: Graph to load.
        name: Name of the model in reports.
        threads: Threads of each kernel.
        arenas: Pool of arenas, as `arena_pool` of `load`.
        like: Model whose packed weights serve for the same constants.
        progress: As for `load`, and called with 0 and 0 during lowering; may raise.

    Raises:
        GraphError: It has a node that no kernel can run.
        OutOfMemoryError: The system refuses the memory.
    """
    from tightship.loading.unprepared import load_graph_anew

    packed = () if like is None else like.packed_weights
    bounds = Bounds(ARENAS_MAX, arena_pool=arenas)
    return load_graph_anew(graph, name, bounds, threads, packed, progress)


@explains_memory("loading a model")
def load_open_graph(
    graphs: "OpenGraphs",
    name: str,
    threads: int = 1,
    arenas: "ArenaGroup | None" = None,
    programs: int = 32,
) -> Model:
    """Load a model that has another graph for each set of input shapes; see `load_graph`.

    Programs for further shapes are kept as by `load`, over one copy of the weights.
    """
    from tightship.loading.unprepared import load_open_graph_anew

    bounds = Bounds(ARENAS_MAX, programs=programs, arena_pool=arenas)
    return load_open_graph_anew(graphs, name, bounds, threads)


def _is_gguf(model: "ModelSource") -> bool:
    """Return whether a model is the path of a GGUF file."""
    from tightship.frontend.gguf_letters import begins_as_gguf

    return isinstance(model, str | PathLike) and begins_as_gguf(model)


def _bounds(
    max_memory: str | int | None,
    dynamic_memory: str | int | None,
    programs: int,
    program_memory: str | int,
    retention: Retention,
    arena_pool: "SharedArenaPool | ArenaGroup | None",
) -> Bounds:
    """Collect the limits of a model in bytes.

    Raises:
        InputError: An amount is not a number of bytes, or `programs` is below 1.
    """
    if programs < 1:
        raise InputError(f"`programs` is {programs}; it must be at least 1.")
    return Bounds(
        ARENAS_MAX,
        None if max_memory is None else parse_bytes(max_memory, "max_memory"),
        None if dynamic_memory is None else parse_bytes(dynamic_memory, "dynamic_memory"),
        programs,
        parse_bytes(program_memory, "program_memory"),
        retention,
        arena_pool,
    )


def _pooled(bounds: Bounds, pool_budget: str | int | None) -> Bounds:
    """Add the budget of free pools, if one is given."""
    given = None if pool_budget is None else parse_bytes(pool_budget, "pool_budget", least=0)
    return bounds._replace(pool_bytes=given)


def _planned(bounds: Bounds) -> int | None:
    """Return the bytes of the limit that are for the plan."""
    if bounds.limit_bytes is None:
        return None
    return bounds.limit_bytes - (bounds.dynamic_bytes or 0)


def _passes(without: Collection[str]) -> Collection[str]:
    """Return the present names of passes to leave out."""
    if not without:
        return ()
    from tightship.deprecated import current_passes  # few leave passes out

    return current_passes(without)


def _chosen(
    model: "ModelSource", without: Collection[str], activations: str | None
) -> Collection[str]:
    """Return the passes to leave out for a type of activations."""
    if activations is None and not without:
        return ()
    from tightship.loading.activations import chosen_passes  # few models choose

    return chosen_passes(model, without, activations)


def _refuse(arguments: Mapping[str, object], why: str) -> None:
    """Refuse arguments that do not fit what is planned.

    Args:
        arguments: Values by name; None for one that was not given.
        why: Reason and remedy, as in "`name` is for ...; give ...".

    Raises:
        InputError: One is given.
    """
    for name, value in arguments.items():
        if value is not None:
            raise InputError(f"`{name}` {why}.")


def _opened(
    model: "ModelSource",
    example_inputs: object,
    shapes: Mapping[str, Sequence[int | str] | int] | None,
) -> "tuple[ModelSource, Shapes | None]":
    """Open a module with its example inputs; return other models as they are."""
    numbers = cast("Shapes | None", shapes)  # texts are for modules; `Settings` refuses others
    if example_inputs is None and not callable(model):
        return model, numbers
    from tightship.frontend.modules import opened  # few models are modules

    return opened(model, example_inputs, shapes) or (model, numbers)


def _untuned_path(model: "ModelSource", tune: str | PathLike[str] | None) -> str:
    """Return the path of a prepared model, which leaves nothing to tune."""
    assert isinstance(model, str | PathLike)
    path = os.fspath(model)
    if tune is not None:
        name = os.path.basename(path)
        raise InputError(f"`{name}` is prepared; `tune` is for the ONNX file.")
    return path
