"""Loads the file that was prepared of a model for this user (`share=True`).

Modules that read the model's own file are imported when it is prepared, or further shapes come.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from os import PathLike, fspath
from typing import TYPE_CHECKING, TypeVar

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.compile.input_shapes import shape_or_length
from tightship.engine.library import open_library
from tightship.engine.weights.weight_store import Progress
from tightship.errors import CapacityError, InputError
from tightship.loading.model_specializer import ModelSpecializer, Original
from tightship.loading.prepared_once import place_of, shared
from tightship.loading.preparing import prepare
from tightship.loading.reading_process import ReadingProcess
from tightship.loading.restoring import Asked, load_prepared
from tightship.loading.step_files import StepFiles
from tightship.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from tightship.loading.input_shapes import Given
    from tightship.prepared_cache import Identity

T = TypeVar("T")


def load_shared(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    tune: str | PathLike[str] | None,
    progress: Progress | None,
) -> Model | None:
    """Load the model as prepared for all processes of this user; None if that is impossible.

    Raises:
        InputError: `tune` is given.
    """
    if tune is not None:
        raise InputError(
            f"`{name_of(model)}` cannot be shared and tuned at once; leave `tune` out, "
            "or share a file that `tightship prepare --tune` has written."
        )
    if "onednn" not in settings.without:
        open_library()
    with ReadingProcess() as process:
        try:
            return _load_shared(model, settings, bounds, progress, process)
        except CapacityError:
            if settings.workers == 1 or settings.workers_memory == 0:
                raise
        lean = replace(settings, workers_memory=0)
        return _load_shared(model, lean, bounds, progress, process)


def _load_shared(
    model: ModelSource,
    settings: Settings,
    bounds: Bounds,
    progress: Progress | None,
    process: ReadingProcess,
) -> Model | None:
    given = {name: shape_or_length(shape) for name, shape in (settings.shapes or {}).items()}

    def apart(function: Callable[..., T], *arguments: object, **named: Progress | None) -> T:
        if _can_be_sent(model):
            return process.call(function, *arguments, **named)
        return function(*arguments, **named)

    if any(isinstance(each, int) or len(each) == 1 for each in given.values()):
        # The prepared file has shapes by input only.
        settings = replace(settings, shapes=apart(_shapes, _sendable(model), given))
    settings = replace(settings, limit_bytes=None)  # files are for limits of any size
    shapes, threads, without = settings.shapes, settings.threads, settings.without

    def make(path: "Path") -> None:
        plain = {name: shape_or_length(shape) for name, shape in (shapes or {}).items()}
        wanted = replace(settings, shapes=plain or None, without=tuple(without))
        apart(_prepare, _sendable(model), fspath(path), wanted, progress=progress)
        process.end()

    def read(path: "Path", identity: "Identity") -> Model:
        steps = StepFiles(identity, settings, place_of(model))
        further = partial(
            ModelSpecializer,
            read=lambda: _original(model, settings, bounds, identity),
            steps=steps,
        )
        asked = Asked(shapes, threads, without, workers=settings.workers)
        return load_prepared(path, asked, bounds, further)

    return shared(model, settings, make, read, apart)


def _can_be_sent(model: ModelSource) -> bool:
    """Whether another process can read the model.

    A program of torch may have operators that only this process knows.
    """
    from tightship.frontend import PROGRAM_SUFFIX  # only for files that are not prepared

    if isinstance(model, str | PathLike):
        return not fspath(model).endswith(PROGRAM_SUFFIX)
    return isinstance(model, bytes)


def _sendable(model: ModelSource) -> ModelSource:
    return fspath(model) if isinstance(model, PathLike) else model


def _shapes(model: ModelSource, given: "Given") -> dict[str, tuple[int, ...]] | None:
    """Return shapes by input for lengths by dimension."""
    from tightship.loading.opening import open_model, shapes_for

    return shapes_for(open_model(model), given)


def _prepare(
    model: ModelSource, path: str, settings: Settings, progress: Progress | None = None
) -> None:
    """Prepare a model into a file, and return nothing that a process would send."""
    prepare(
        model, path, shapes=settings.shapes, threads=settings.threads, without=settings.without,
        workers=settings.workers, workers_memory=settings.workers_memory, progress=progress,
    )  # fmt: skip


def _original(
    model: ModelSource, settings: Settings, bounds: Bounds, identity: "Identity"
) -> Original:
    """Read the model that the file was prepared from.

    Raises:
        InputError: It has changed since.
    """
    from tightship.loading.opening import open_for
    from tightship.loading.unprepared import variants_of

    if not identity.is_current():
        raise InputError(f"`{name_of(model)}` has changed since it was loaded; load it again.")
    name = name_of(model)
    source, settings = open_for(model, settings)
    return Original(name, settings, source.graph, variants_of(source, name, settings, bounds))
