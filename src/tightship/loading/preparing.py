"""`prepare`: converts a model file to one that is mapped and runs at once.

Modules that read, lower and write are imported when a model is prepared.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, BinaryIO

from tightship import _core
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
    from tightship.graph import Graph


@explains_memory("preparing a model")
def prepare(
    model: "ModelSource",
    output: str | PathLike[str],
    *,
    shapes: "Shapes | Sequence[Shapes] | None" = None,
    threads: int = 1,
    without: Collection[str] = (),
    tune: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> MemoryPlan:
    """Write a model's program, plan and packed weights into a file that `load` maps and shares.

    The file suits this version of Tightship, this oneDNN and the features of this processor. It is
    replaced whole or not at all; models loaded from a previous file keep that.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`, or a traced
            function of jax.
        output: Path of the file to write, by convention `.tship`.
        shapes: Shapes for inputs whose dimensions are symbolic; several sets make several programs
            over one copy of the weights.
        threads: Threads of each kernel.
        without: Passes to leave out, for comparison.
        tune: File of measured choices, as for `load`; the choice is for the first set of shapes
            only.
        progress: Function called with the bytes of weights packed so far and in all.

    Returns:
        Plan of a process that loads the file, for the first set of shapes.

    Raises:
        FormatError, GraphError: The errors of `plan`.
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
    from tightship.engine.stored.save import save
    from tightship.loading.opening import measure

    if holds_prepared(model):
        raise InputError(f"`{name_of(model)}` is prepared already; give the ONNX file.")
    path, without = Path(output), current_passes(without)
    if isinstance(model, str | PathLike) and path.exists() and path.samefile(model):
        raise InputError(f"`{path}` would take the place of the model; give another name.")
    sets = [shapes] if shapes is None or isinstance(shapes, Mapping) else list(shapes)
    if not sets:
        raise InputError("`shapes` is an empty list; leave it out, or give a set of shapes.")
    settings = [Settings(each, threads, without) for each in sets]
    if "onednn" not in without:
        open_library()
    if tune is not None:
        settings[0] = measure(model, settings[0], tune)
    save(path, _programs(model, settings), Compatibility.here(threads, without), progress)
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
    from tightship.engine.stored.save import save_into

    open_library()
    with recording():
        go_on = progress and partial(progress, 0, 0)
        program = prepare_graph(graph, name, Settings(threads=threads, go_on=go_on))
    save_into(file, [program], Compatibility.here(threads, ()), progress)
    del program
    release_unused()


@contextmanager
def recording() -> Iterator[None]:
    """Record recipes of what is lowered within the block."""
    was = _core.record_recipes(wanted=True)
    try:
        yield
    finally:
        _core.record_recipes(wanted=was)


def _programs(model: "ModelSource", settings: "Sequence[Settings]") -> list[CompiledModel]:
    """Lower each set of shapes, reusing packed layouts of the sets before."""
    from tightship.engine.compile.compile_graph import name_of
    from tightship.engine.compile.compile_graph import prepare as prepare_graph
    from tightship.loading.opening import is_open, open_model, shapes_for

    source = open_model(model)
    packed: dict[str, list[PackedWeight]] = {}
    programs: list[CompiledModel] = []
    with recording():
        for each in settings:
            shapes = shapes_for(source, each.shapes)
            known: PackedBefore | None = packed if is_open(source.declared) else None
            prepared = prepare_graph(source.graph(shapes), name_of(model), each, known)
            programs.append(prepared)
            for weight in prepared.placement.lowered.weights:
                held = packed.setdefault(weight.name, [])
                if not any(weight is other for other in held):
                    held.append(weight)
    return programs
