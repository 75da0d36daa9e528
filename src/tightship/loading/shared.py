"""Loads the file that was prepared of a model for this user (`share=True`).

Modules that read the model's own file are imported when it is prepared, or further shapes come.
"""

from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import ModelSource, Settings, name_of
from tightship.engine.compile.input_shapes import shape_or_length
from tightship.engine.library import open_library
from tightship.engine.weights.weight_store import Progress
from tightship.errors import InputError
from tightship.loading.model_specializer import ModelSpecializer, Original
from tightship.loading.prepared_once import place_of, shared
from tightship.loading.preparing import prepare
from tightship.loading.restoring import Asked, load_prepared
from tightship.loading.step_files import StepFiles
from tightship.model import Model

if TYPE_CHECKING:
    from pathlib import Path

    from tightship.prepared_cache import Identity


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
    plain = [shape_or_length(shape) for shape in (settings.shapes or {}).values()]
    if any(isinstance(each, int) or len(each) == 1 for each in plain):
        from tightship.loading.opening import open_for

        _, settings = open_for(model, settings)  # the prepared file has shapes by input only
    shapes, threads, without = settings.shapes, settings.threads, settings.without

    def make(path: "Path") -> None:
        prepare(model, path, shapes=shapes, threads=threads, without=without, progress=progress)

    def read(path: "Path", identity: "Identity") -> Model:
        steps = StepFiles(identity, settings, place_of(model))
        further = partial(
            ModelSpecializer,
            read=lambda: _original(model, settings, bounds, identity),
            steps=steps,
        )
        return load_prepared(path, Asked(shapes, threads, without), bounds, further)

    return shared(model, settings, make, read)


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
