"""`plan` and `load` of models that are not prepared: ONNX files, programs of torch and jax."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from os import PathLike, fspath

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Declared, ModelSource, Settings, name_of, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.compile.shape_specializer import ShapeSpecializer
from tightship.engine.library import open_library, release_unused
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.stored.recipes import recording
from tightship.engine.template.variants import Variants
from tightship.engine.weights.weight_store import PackedCopy, Progress
from tightship.frontend.onnx import OnnxFile
from tightship.graph import Graph
from tightship.graph.open_graphs import OpenGraphs
from tightship.loading.budget import check_shapes
from tightship.loading.handing_over import plan_file
from tightship.loading.opening import OpenedModel, anew, check_limit, is_open, measure, open_for
from tightship.model import Model

Keep = Callable[[CompiledModel, Variants], ShapeSpecializer]
"""Function that keeps the program of loading, and returns a compiler that keeps further ones."""


def plan_anew(
    model: ModelSource, settings: Settings, tune: str | PathLike[str] | None
) -> MemoryPlan:
    """Plan a model that is not prepared, as `plan` does."""
    if tune is None and isinstance(model, str | PathLike):
        return plan_file(fspath(model), settings)
    _open_library(settings)
    if tune is not None:
        settings = measure(model, settings, tune)
    source, settings = open_for(model, settings)
    return anew(source, name_of(model), settings).plan


def load_anew(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    tune: str | PathLike[str] | None,
    progress: Progress | None,
    keep: Keep | None = None,
) -> Model:
    """Load a model that is not prepared, as `load` does; `keep` gets its program."""
    source, variants, prepared, further = compile_anew(model, settings, bounds, tune, keep)
    loaded = Model(prepared, bounds, further, progress)
    del prepared  # it has the last references to descriptions of primitives
    if variants is None and not isinstance(source, OnnxFile):
        source.forget()  # no other shapes come, for which weights could be packed again
    release_unused()
    return loaded


def compile_anew(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    tune: str | PathLike[str] | None,
    keep: Keep | None,
) -> tuple[OpenedModel, Variants | None, CompiledModel, ShapeSpecializer | None]:
    """Compile a model as `load_anew` does.

    Returns:
        The opened model; its compiler for further shapes, None if the file fixes them all; its
        program; and the compiler that keeps programs, if it keeps them.
    """
    _open_library(settings)
    source, settings = open_for(model, settings)
    if isinstance(source, OnnxFile):
        source.check_whole()
    else:
        source.refuse_absent()
    if tune is not None:
        settings = measure(model, settings, tune, bounds)
    variants = variants_of(source, name_of(model), settings, bounds)
    with recording() if keep else nullcontext():
        prepared = _prepared(source, name_of(model), settings, variants)
    if bounds.limit_bytes is not None:
        check_limit(prepared.plan, model, settings, bounds.limit_bytes, bounds.dynamic_bytes)
    further: ShapeSpecializer | None = variants
    if keep is not None and variants is not None:
        prepared = prepared._replace(stated=prepared.plan)  # it is compared with others once
        further = keep(prepared, variants)
    return source, variants, prepared, further


def load_graph_anew(
    graph: Graph,
    name: str,
    bounds: Bounds,
    threads: int,
    packed: Sequence[PackedCopy],
    progress: Progress | None,
) -> Model:
    """Load a graph, as `load_graph` does."""
    settings = Settings(threads=threads, go_on=progress and partial(progress, 0, 0))
    _open_library(settings)
    loaded = Model(prepare(graph, name, settings), bounds, None, progress, packed)
    release_unused()
    return loaded


def load_open_graph_anew(graphs: OpenGraphs, name: str, bounds: Bounds, threads: int) -> Model:
    """Load a model with a graph for each set of shapes, as `load_open_graph` does."""
    settings = Settings(graphs.first, threads)
    _open_library(settings)
    variants = Variants(
        name, settings, graphs.declared, graphs.read, lambda *_: None, follow=lambda _: None
    )
    loaded = Model(variants.prepare(graphs.first), bounds, variants)
    release_unused()
    return loaded


def _prepared(
    source: OpenedModel, name: str, settings: Settings, variants: Variants | None
) -> CompiledModel:
    """Compile the model for the shapes of its settings."""
    declared = source.declared
    given = _fixed(declared) | settings.input_shapes
    if (
        variants is None
        or not variants.admit(tuple(given.items()))
        or given.keys() != declared.keys()
    ):
        return prepare(source.graph(settings.input_shapes), name, settings)
    return variants.prepare(given)


def _fixed(declared: Declared) -> dict[str, tuple[int, ...]]:
    """Return the shapes of inputs that have no open length."""
    return {
        name: tuple([length for length in shape if isinstance(length, int)])
        for name, shape in declared.items()
        if shape is not None and not is_open({name: shape})
    }


def variants_of(
    source: OpenedModel, name: str, settings: Settings, bounds: Bounds
) -> Variants | None:
    """Make the compiler for further shapes; None if the file fixes them all."""
    declared = source.declared
    if not is_open(declared):
        return None

    def check(plan: MemoryPlan, shapes: Mapping[str, tuple[int, ...]]) -> None:
        if bounds.limit_bytes is not None:
            check_shapes(plan, shapes, bounds.limit_bytes, bounds.dynamic_bytes)

    follow = None
    if not isinstance(source, OnnxFile):
        from tightship.frontend.torch import TorchProgram

        assert isinstance(source, TorchProgram), "a traced function of jax has no open lengths"
        follow = source.followed
    outputs = source.output_shapes if isinstance(source, OnnxFile) else None
    return Variants(name, settings, declared, source.graph, check, follow, outputs)


def _open_library(settings: Settings) -> None:
    """Open the library first, because opening takes the most memory for a moment."""
    if "onednn" not in settings.without:
        open_library()
