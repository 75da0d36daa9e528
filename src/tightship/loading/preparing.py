"""`prepare`: converts a model file to one that is mapped and runs at once.

Modules that read, lower and write are imported when a model is prepared.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO, Literal, cast

from tightship.engine.activations import with_precision
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.library import open_library, release_unused
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.container import holds_prepared
from tightship.engine.weights.weight_store import Progress
from tightship.errors import InputError
from tightship.public_calls import explains_memory

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import ModelSource, Settings, Shapes
    from tightship.engine.stored.save import Steps
    from tightship.frontend.modules import Opened
    from tightship.graph import Graph
    from tightship.loading.opening import OpenedModel
    from tightship.loading.settings import Workers


@explains_memory("preparing a model")
def prepare(
    model: "ModelSource",
    output: str | PathLike[str],
    *,
    example_inputs: object = None,
    shapes: "Mapping[str, Sequence[int | str] | int] | Sequence[Shapes] | None" = None,
    threads: int = 1,
    workers: int = 1,
    workers_memory: str | int | None = None,
    without: Collection[str] = (),
    activations: Literal["float32", "int8"] | None = None,
    precision: Literal["float32", "bfloat16"] | None = None,
    tune: str | PathLike[str] | None = None,
    progress: Progress | None = None,
    context: int | Sequence[int] = (),
    chunk: int = 128,
    cache: Literal["float16", "bfloat16", "int8"] | None = None,
) -> MemoryPlan:
    """Write a model's program, plan and packed weights into a file that `load` maps and shares.

    The file suits this version of Tightship, this oneDNN and the features of this processor. It is
    replaced whole or not at all; models loaded from a previous file keep that.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`, or a traced
            function of jax; or a module of torch, flax or equinox, or a function of jax, with
            `example_inputs`.
        output: Path of the file to write, by convention `.tship`.
        example_inputs: Arguments of a module, as for `plan`.
        shapes: Shapes for inputs whose dimensions are symbolic; several sets make several programs
            over one copy of the weights. For a module one set, as for `plan`.
        threads: Threads of each kernel.
        workers: Steps that run at once, as for `plan`; sessions have one worker.
        workers_memory: As for `plan`.
        without: Passes to leave out, for comparison.
        activations: As for `plan`; the file keeps the choice.
        precision: As for `load`; the file keeps the choice.
        tune: File of measured choices, as for `load`; the choice is for the first set of shapes
            only.
        progress: Function called with the bytes of weights packed so far and in all.
        context: Most tokens of sessions that `Model.session` opens from the file, or several such
            numbers. Without them, the file opens no session.
        chunk: Most tokens of these sessions that run at once, as for `Model.session`.
        cache: Type that the caches of these sessions are rounded to, as for `Model.session`.

    Returns:
        Plan of a process that loads the file, for the first set of shapes.

    Raises:
        FormatError, GraphError: The errors of `plan`, and of `Model.session` with a context.
        InputError: An error of `plan`; or only `onnx.reference` runs a step, a shape depends on
            data, or `output` is the model's own file.
        OSError: The file cannot be written.
        OutOfMemoryError: Memory to pack the largest weight cannot be allocated.
    """
    from pathlib import Path

    from tightship.deprecated import current_passes
    from tightship.engine.compile.compile_graph import Settings, name_of
    from tightship.engine.stored.compatibility import Compatibility
    from tightship.engine.stored.model import StoredModel
    from tightship.engine.stored.recipes import recording
    from tightship.engine.stored.save import save
    from tightship.frontend.onnx import OnnxFile
    from tightship.loading.activations import chosen_passes
    from tightship.loading.opening import measure, open_model

    model, shapes = _opened(model, example_inputs, shapes) or (model, shapes)
    if holds_prepared(model):
        raise InputError(f"`{name_of(model)}` is prepared already; give the ONNX file.")
    without = with_precision(current_passes(without), precision)
    path, without = Path(output), chosen_passes(model, without, activations)
    if isinstance(model, str | PathLike) and path.exists() and path.samefile(model):
        raise InputError(f"`{path}` would take the place of the model; give another name.")
    settings = _settings(shapes, Settings(None, threads, without), (workers, workers_memory),
                         {"tune": tune, "context": context or None})  # fmt: skip
    if "onednn" not in without:
        open_library()
    if tune is not None:
        settings[0] = measure(model, settings[0], tune)
    made = Compatibility.here(threads, without, workers)
    source, packed = open_model(model), dict[str, list[PackedWeight]]()
    check = source.check_whole if isinstance(source, OnnxFile) else source.refuse_absent
    check()
    programs = _programs(source, name_of(model), settings, packed)
    sessions: Iterable[Steps] = ()
    if context:
        from tightship.loading.session_programs import session_steps  # few models have sessions

        contexts = (context,) if isinstance(context, int) else context
        sessions = session_steps(source, settings[0], programs[0], packed, (contexts, chunk, cache))
    with recording():
        save(path, programs, made, progress, sessions, source.declared)
    del programs, packed, sessions, source
    release_unused()
    return StoredModel(path).plan()


@explains_memory("preparing a model")
def prepare_into(
    file: BinaryIO,
    graph: "Graph",
    name: str,
    threads: int = 1,
    progress: Progress | None = None,
) -> None:
    """Prepare a graph, as `prepare` does, into an open and empty file.

    Args:
        file: File to write; has an unknown part of the content if this fails.
        graph: Graph whose shapes are all known.
        name: Name of the model in reports.
        threads: Threads of each kernel.
        progress: As for `prepare`, and called with 0 and 0 during lowering; may raise.

    Raises:
        GraphError, InputError, OSError, OutOfMemoryError: The errors of `prepare`.
    """
    from tightship.engine.compile.compile_graph import Settings
    from tightship.engine.compile.compile_graph import prepare as prepare_graph
    from tightship.engine.stored.compatibility import Compatibility
    from tightship.engine.stored.recipes import recording
    from tightship.engine.stored.save import save_into

    open_library()
    with recording():
        go_on = progress and partial(progress, 0, 0)
        program = prepare_graph(graph, name, Settings(threads=threads, go_on=go_on))
    save_into(file, [program], Compatibility.here(threads, ()), progress)
    del program
    release_unused()


def _settings(
    shapes: object, settings: "Settings", workers: "Workers", beside: Mapping[str, object]
) -> "list[Settings]":
    """Return settings for each set of shapes; other arguments as for `with_workers`."""
    from tightship.loading.settings import with_workers

    given = cast("Shapes | Sequence[Shapes] | None", shapes)  # `Settings` refuses texts
    sets = [given] if given is None or isinstance(given, Mapping) else list(given)
    if not sets:
        raise InputError("`shapes` is an empty list; leave it out, or give a set of shapes.")
    found = with_workers(settings, workers, None, beside)
    return [replace(found, shapes=each) for each in sets]


def _opened(
    model: object,
    example_inputs: object,
    shapes: "Mapping[str, Sequence[int | str] | int] | Sequence[Shapes] | None",
) -> "Opened | None":
    """Open a module; None for another model."""
    from tightship.frontend.modules import is_module, opened

    if shapes is None or isinstance(shapes, Mapping) or not is_module(model):
        given = shapes if isinstance(shapes, Mapping) else None
        return opened(model, example_inputs, given)
    raise InputError(
        "`shapes` of a module are one mapping; leave lengths open under names, as in "
        "`{'ids': ('batch', 128)}`, or prepare a program of `torch.export` for several sets."
    )


def _programs(
    source: "OpenedModel",
    name: str,
    settings: "Sequence[Settings]",
    packed: dict[str, list[PackedWeight]],
) -> list[CompiledModel]:
    """Lower each set of shapes, reusing packed layouts of the sets before, which are added."""
    from tightship.engine.compile.compile_graph import prepare as prepare_graph
    from tightship.engine.stored.recipes import recording
    from tightship.loading.opening import is_open, shapes_for
    from tightship.loading.session_programs import add_known

    programs: list[CompiledModel] = []
    with recording():
        for each in settings:
            shapes = shapes_for(source, each.shapes)
            known: PackedBefore | None = packed if is_open(source.declared) else None
            prepared = prepare_graph(source.graph(shapes), name, each, known)
            programs.append(prepared)
            add_known(packed, prepared)
    return programs
