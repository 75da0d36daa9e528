"""`plan` and `load`: from a model to what it takes, and to a model that takes it.

What reads, lowers and plans is imported when a model comes that is not prepared.
"""

import os
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

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
    from tightship.engine.compile.compile_graph import ModelSource, Settings
    from tightship.graph import Graph
    from tightship.graph.open_graphs import OpenGraphs
    from tightship.resource import SharedArenaPool

ARENAS_MAX = 64
"""Arenas a model may have at once where no limit says fewer."""


@explains_memory("planning a model")
def plan(
    model: "ModelSource",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    threads: int | None = None,
    without: Collection[str] = (),
    tune: str | PathLike[str] | None = None,
) -> MemoryPlan:
    """Every byte a model would take, from its file, without loading it.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`, or a traced
            function of jax; or path of a
            prepared model, which has its plan.
        shapes: Shapes for inputs whose dimensions are symbolic.
        threads: Threads of each kernel, on which the plan depends; by default one, or those that
            the model was prepared for.
        without: Passes to leave out, to compare; `tightship.engine.lower.pipeline.pass_names()`.
        tune: File of choices that measurements made. One for this model is used, or else the
            model is run to measure it, in no more memory than without, and the choice stored.
            Memory never grows by a choice. None chooses by a table, and reads no file.

    Raises:
        FormatError: The file is not an ONNX model, or ends early; `tune` holds something else. A
            prepared model is damaged, or was made for something else.
        GraphError: Its graph is not valid, or has an operator nothing can run.
        InputError: `shapes`, `threads` or `without` do not fit.
    """
    if holds_prepared(model):
        from tightship.loading.restoring import Asked, plan_prepared

        return plan_prepared(_untuned_path(model, tune), Asked(shapes, threads, without))
    from tightship.loading.unprepared import plan_anew

    return plan_anew(model, _settings(shapes, threads, without), tune)


@explains_memory("loading a model")
def load(
    model: "ModelSource",
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    max_memory: str | int | None = None,
    dynamic_memory: str | int | None = None,
    threads: int | None = None,
    without: Collection[str] = (),
    programs: int = 32,
    program_memory: str | int = "256MiB",
    idle_s: float | None = 2.0,
    idle_memory: str | int = "2MiB",
    arena_pool: "SharedArenaPool | ArenaGroup | None" = None,
    tune: str | PathLike[str] | None = None,
    share: bool = False,
    progress: Progress | None = None,
) -> Model:
    """Load a model so that it runs in what its plan says.

    Args:
        model: An ONNX file's path or bytes; a program of `torch.export`, a traced function of jax;
            or the path of a prepared model, whose weights are mapped by all who load it.
        shapes: For inputs with symbolic dimensions; a model that is not prepared takes others too.
        max_memory: Most the process may gain by it, all that the plan has, as `"512MiB"` or bytes.
        dynamic_memory: Most that steps outside the plan may allocate in a run; enforced.
        threads: Of each kernel; by default one, or those the model was prepared for.
        without: Passes to leave out, to compare.
        programs: Input shapes that the model stays ready for at once, where the file leaves them
            open; of more, that used longest ago goes, and of those that came once all but two.
        program_memory: Most that these may take besides packed weights.
        idle_s: Seconds after which arenas' memory that no run needs goes back; None keeps it.
        idle_memory: What arenas keep however long nobody runs, if it is more than `shapes` need.
        arena_pool: Arenas that several processes, or models of this one, take in turns.
        tune: As for `plan`; the choice is for `shapes` only.
        share: Prepare an ONNX file once for this user, in `TIGHTSHIP_CACHE_DIR`, and map that: one
            copy of the weights. If it cannot be, a `RuntimeWarning` says why; it loads as without.
        progress: Called with bytes of weights packed, and of all weights.

    Raises:
        CapacityError: A limit does not hold the plan; nothing has been loaded.
        OutOfMemoryError: The system refuses the memory.
        FormatError, GraphError, InputError: As `plan`.
    """
    retention = Retention(idle_s, parse_bytes(idle_memory))
    bounds = _bounds(max_memory, dynamic_memory, programs, program_memory, retention, arena_pool)
    if holds_prepared(model):
        from tightship.loading.restoring import Asked, load_prepared

        path = _untuned_path(model, tune)
        return load_prepared(path, Asked(shapes, threads, without), bounds)
    settings = _settings(shapes, threads, without)
    if share:
        from tightship.loading.shared import load_shared

        shared = load_shared(model, settings, bounds, tune, progress)
        if shared is not None:
            return shared
    from tightship.loading.unprepared import load_anew

    return load_anew(model, settings, bounds, tune, progress)


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
        graph: What it computes.
        name: What reports call it.
        threads: Of each kernel.
        arenas: As `arena_pool` of `load`.
        like: A model whose packed weights serve for the same constants.
        progress: As for `load`, and with 0 and 0 while it is lowered; may raise.

    Raises:
        GraphError: It has a node that nothing can run.
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
    """Load a model whose graph is another for each set of input shapes; otherwise as `load_graph`.

    Programs for shapes that come stay as `load` keeps them, over one copy of the weights.
    """
    from tightship.loading.unprepared import load_open_graph_anew

    bounds = Bounds(ARENAS_MAX, programs=programs, arena_pool=arenas)
    return load_open_graph_anew(graphs, name, bounds, threads)


def _bounds(
    max_memory: str | int | None,
    dynamic_memory: str | int | None,
    programs: int,
    program_memory: str | int,
    retention: Retention,
    arena_pool: "SharedArenaPool | ArenaGroup | None",
) -> Bounds:
    """What a model may take, in bytes.

    Raises:
        InputError: An amount is none, or there are to be no programs.
    """
    if programs < 1:
        raise InputError(f"`programs` is {programs}; it must be at least 1.")
    return Bounds(
        ARENAS_MAX,
        None if max_memory is None else parse_bytes(max_memory),
        None if dynamic_memory is None else parse_bytes(dynamic_memory),
        programs,
        parse_bytes(program_memory),
        retention,
        arena_pool,
    )


def _settings(
    shapes: Mapping[str, Sequence[int]] | None, threads: int | None, without: Collection[str]
) -> "Settings":
    from tightship.engine.compile.compile_graph import Settings

    return Settings(shapes, 1 if threads is None else threads, without)


def _untuned_path(model: "ModelSource", tune: str | PathLike[str] | None) -> str:
    """Of a prepared model, in which nothing is left to choose."""
    assert isinstance(model, str | PathLike)
    path = os.fspath(model)
    if tune is not None:
        name = os.path.basename(path)
        raise InputError(f"`{name}` is prepared; `tune` is for the ONNX file.")
    return path
