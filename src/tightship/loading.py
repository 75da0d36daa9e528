"""`plan` and `load`: from a model to what it takes, and to a model that takes it."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from tightship.budget import ARENAS_MAX, check_shapes
from tightship.engine.library import open_library, release_unused
from tightship.engine.memory_plan import MemoryPlan
from tightship.engine.prepare import ModelSource, Prepared, Settings, name_of, prepare
from tightship.engine.program_cache import Bounds
from tightship.engine.retention import Retention
from tightship.engine.stored.container import holds_prepared
from tightship.engine.variants import Variants
from tightship.engine.weight_store import Progress
from tightship.errors import InputError
from tightship.model import Model
from tightship.opening import OpenedModel, anew, check_limit, is_open, measure, open_model
from tightship.quantity import parse_bytes

if TYPE_CHECKING:
    from tightship.prepared_cache import Identity
    from tightship.resource import SharedArenaPool


def plan(
    model: ModelSource,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    threads: int | None = None,
    without: Collection[str] = (),
    tune: str | PathLike[str] | None = None,
) -> MemoryPlan:
    """Every byte a model would take, from its file, without loading it.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`; or path of a
            prepared model, which has its plan.
        shapes: Shapes for inputs whose dimensions are symbolic.
        threads: Threads of each kernel, on which the plan depends; by default one, or those that
            the model was prepared for.
        without: Passes to leave out, to compare; `tightship.engine.lower.passes.pass_names()`.
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
        from tightship.restoring import Asked, plan_prepared

        return plan_prepared(_path(model, tune), Asked(shapes, threads, without))
    settings = Settings(shapes, 1 if threads is None else threads, without)
    _open_library(settings)
    if tune is not None:
        settings = measure(model, settings, tune)
    return anew(open_model(model), name_of(model), settings).plan


def load(
    model: ModelSource,
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
    arena_pool: "SharedArenaPool | None" = None,
    tune: str | PathLike[str] | None = None,
    share: bool = False,
    progress: Progress | None = None,
) -> Model:
    """Load a model so that it runs in what its plan says.

    Args:
        model: Path of an ONNX file, or its bytes; a program of `torch.export`; or path of a
            prepared model, whose weights are mapped and shared with all who load it.
        shapes: Shapes for inputs whose dimensions are symbolic. The model takes others later, and
            is ready for these at once; a prepared one takes those it was prepared for.
        max_memory: Most the process may gain by it, as `"512MiB"` or in bytes: weights, arena,
            inputs and outputs, runtime.
        dynamic_memory: Most that steps outside the plan may allocate in a run; enforced.
        threads: Threads of each kernel; by default one, or those the model was prepared for.
        without: Passes to leave out, to compare.
        programs: Input shapes, where the file leaves them open, that the model stays ready for
            at once; of more, the one used longest ago is prepared anew, and of those that came
            once all but two are.
        program_memory: Most that being ready for them may take besides the packed weights:
            steps, generated code, and weights in layouts of their own.
        idle_s: Seconds after which memory of arenas that no run has needed since goes back to
            the system; much of it sooner, once eight runs did not need it. None keeps it.
        idle_memory: What arenas keep however long nobody runs, if it is more than `shapes` need.
        arena_pool: Arenas that runs of several processes take in turns; its size and its wait
            are then the pool's, and `idle_s` and `idle_memory` mean nothing.
        tune: As for `plan`; the choice is for `shapes` only.
        share: Prepare an ONNX file once for this user, in `TIGHTSHIP_CACHE_DIR`, and map what was
            prepared, so that all processes have one copy of the weights. The ONNX file is read
            again when other shapes than `shapes` come. Where it cannot be prepared, a
            `RuntimeWarning` says why, and the model is loaded as without.
        progress: Called with bytes of weights packed, and of all weights.

    Raises:
        CapacityError: The plan exceeds `max_memory`, or has steps that allocate outside it and
            `dynamic_memory` does not bound them; nothing has been loaded.
        OutOfMemoryError: The system refuses the memory.
        FormatError, GraphError, InputError: As `plan`.
    """
    limit = None if max_memory is None else parse_bytes(max_memory)
    dynamic = None if dynamic_memory is None else parse_bytes(dynamic_memory)
    if programs < 1:
        raise InputError(f"`programs` is {programs}; it must be at least 1.")
    retention = Retention(idle_s, parse_bytes(idle_memory))
    bounds = Bounds(
        ARENAS_MAX, limit, dynamic, programs, parse_bytes(program_memory), retention, arena_pool
    )
    if holds_prepared(model):
        from tightship.restoring import Asked, load_prepared

        return load_prepared(_path(model, tune), Asked(shapes, threads, without), bounds)
    settings = Settings(shapes, 1 if threads is None else threads, without)
    _open_library(settings)
    if share:
        shared = _shared(_untuned(model, tune), settings, bounds, progress)
        if shared is not None:
            return shared
    source = open_model(model)
    if tune is not None:
        settings = measure(model, settings, tune, bounds)
    variants = _variants(source, name_of(model), settings, bounds)
    prepared = _prepared(source, name_of(model), settings, variants)
    if limit is not None:
        check_limit(prepared.plan, model, settings, limit, dynamic)
    loaded = Model(prepared, bounds, variants, progress)
    del prepared  # the last to hold descriptions of primitives
    release_unused()
    return loaded


def _shared(
    model: ModelSource, settings: Settings, bounds: Bounds, progress: Progress | None
) -> Model | None:
    """The model as it is prepared for all processes of this user; None where that cannot be."""
    from tightship.further import FurtherShapes, Original
    from tightship.preparing import prepare as prepare_file
    from tightship.restoring import Asked, load_prepared
    from tightship.sharing import shared

    shapes, threads, without = settings.shapes, settings.threads, settings.without

    def make(path: Path) -> None:
        prepare_file(
            model, path, shapes=shapes, threads=threads, without=without, progress=progress
        )

    def read(path: Path, identity: "Identity") -> Model:
        def original() -> Original:
            if not identity.is_current():
                raise InputError(
                    f"`{name_of(model)}` has changed since it was loaded; load it again."
                )
            source, name = open_model(model), name_of(model)
            variants = _variants(source, name, settings, bounds)
            return Original(name, settings, source.graph, variants)

        asked = Asked(shapes, threads, without)
        return load_prepared(path, asked, bounds, partial(FurtherShapes, read=original))

    return shared(model, settings, make, read)


def _untuned(model: ModelSource, tune: str | PathLike[str] | None) -> ModelSource:
    """A model for which nothing is measured."""
    if tune is not None:
        raise InputError(
            f"`{name_of(model)}` is to be shared, for which nothing is measured; leave `tune` out, "
            "or share a file that `tightship prepare --tune` has written."
        )
    return model


def _prepared(
    source: OpenedModel, name: str, settings: Settings, variants: Variants | None
) -> Prepared:
    """The model for the shapes of its settings."""
    declared = source.declared
    given = {k: tuple(shape) for k, shape in (settings.shapes or {}).items()}
    if (
        variants is None
        or not variants.admit(tuple(given.items()))
        or given.keys() != declared.keys()
    ):
        return prepare(source.graph(settings.shapes), name, settings)
    return variants.prepare(given)


def _variants(
    source: OpenedModel, name: str, settings: Settings, bounds: Bounds
) -> Variants | None:
    """How to prepare the model for other shapes; None if the file fixes them all."""
    declared = source.declared
    if not is_open(declared):
        return None

    def check(plan: MemoryPlan, shapes: Mapping[str, tuple[int, ...]]) -> None:
        if bounds.limit_bytes is not None:
            check_shapes(plan, shapes, bounds.limit_bytes, bounds.dynamic_bytes)

    return Variants(name, settings, declared, source.graph, check)


def _path(model: ModelSource, tune: str | PathLike[str] | None) -> Path:
    """Of a prepared model, in which nothing is left to choose."""
    if tune is not None:
        raise InputError(f"`{name_of(model)}` is prepared; `tune` is for the ONNX file.")
    assert isinstance(model, str | PathLike)
    return Path(model)


def _open_library(settings: Settings) -> None:
    """Before anything is read: opening is what takes the most, though not for long."""
    if "onednn" not in settings.without:
        open_library()
