"""Loading of a version of a model for the repository."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tightship.driver.memory.reserve import reserved
from tightship.driver.oip.model_config import (
    ANY,
    ConfigMismatchError,
    ModelConfig,
    check_matches,
)
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.served_model import input_types, output_types
from tightship.engine.arenas.arena_group import ArenaGroup
from tightship.engine.stored.container import holds_prepared
from tightship.errors import GraphError, InputError, TightshipError
from tightship.graph import Shape
from tightship.loading import load, plan
from tightship.loading.first_shapes import first_shapes
from tightship.loading.opening import open_model
from tightship.model import Model


def planned(source: ModelSource) -> ModelSource:
    """Return a source with the shapes that its configuration gives, of the largest batch.

    Raises:
        ConfigMismatchError: The file declares something else than the configuration.
        InputError: The file does not exist.
        FormatError: The file cannot be read.
    """
    config, path = source.config, Path(source.path)
    if config is None:
        return source
    if not path.is_file():
        raise InputError(
            f"Version {path.parent.name} has no file `{path.name}`; put the model there, or name "
            "another file by `default_model_filename`."
        )
    if holds_prepared(path):
        return source
    opened = open_model(path)
    outputs: Mapping[str, Shape | None] = getattr(opened, "declared_outputs", {})
    check_matches(
        config,
        {name: (None, shape) for name, shape in opened.declared.items()},
        {name: (None, shape) for name, shape in outputs.items()},
    )
    return replace(source, shapes=_shapes(config, opened.declared) | dict(source.shapes or {}))


def _shapes(config: ModelConfig, declared: Mapping[str, Shape | None]) -> dict[str, Sequence[int]]:
    """Return the shapes of inputs that the file leaves open and the configuration does not."""
    found: dict[str, Sequence[int]] = {}
    dims = {each.name: each.dims for each in config.inputs}
    size = config.max_batch_size
    for name, shape in declared.items():
        if shape is None or all(isinstance(each, int) for each in shape):
            continue
        rest: Sequence[object] = dims.get(name, shape[1:] if size else shape)
        wanted = (size, *rest) if size else tuple(rest)
        lengths = [each for each in wanted if isinstance(each, int) and each != ANY]
        if len(lengths) == len(wanted):
            found[name] = tuple(lengths)
        elif size and isinstance(shape[0], str) and shape[0].isidentifier():
            found[shape[0]] = (size,)
    return found


def with_lengths(source: ModelSource, load_once: Callable[[ModelSource], Model]) -> Model:
    """Load a model; lengths that neither its file nor its source gives are chosen here.

    Args:
        source: The model.
        load_once: Loads it with the shapes of the source that it gets, as `load_checked`.

    Raises:
        InputError: No choice fits the model, or its configuration does not match it.
        TightshipError: It cannot be loaded.
    """
    try:
        return load_once(source)
    except ConfigMismatchError:
        raise  # other lengths do not change it
    except InputError as error:
        reason = error
    failed: TightshipError | None = None
    for shapes in first_shapes(source.path, source.shapes or {}):
        try:
            return load_once(replace(source, shapes=shapes))
        except (GraphError, InputError) as error:
            failed = failed or error
    if failed is None:
        raise reason
    raise InputError(f"{reason} Lengths that were tried do not fit: {failed}") from failed


def load_checked(source: ModelSource, arenas: ArenaGroup) -> Model:
    """Load a model and compare it with its configuration.

    Raises:
        ConfigMismatchError: They differ.
        TightshipError: It cannot be loaded.
    """
    with reserved():
        model = load(
            source.path,
            shapes=source.shapes,
            threads=source.threads,
            max_memory=source.max_memory,
            dynamic_memory=source.dynamic_memory,
            activations=source.activations,
            share=source.share,
            arena_pool=arenas,
        )
    try:
        outputs = output_types(model)  # may read the file, so do it before any request waits
        if source.config is not None:
            check_matches(source.config, input_types(model), outputs)
    except (TightshipError, OSError):
        model.close()
        raise
    return model


def needed_bytes(source: ModelSource) -> int:
    """Return the memory that a model takes beside the one it replaces, by its plan.

    Models share arenas, and requests bring the arrays of inputs and outputs. Where memory is short
    the server plans the model itself.

    Raises:
        TightshipError: It cannot be planned.
    """
    found = plan(source.path, shapes=source.shapes, threads=source.threads,
                 activations=source.activations)  # fmt: skip
    return found.here_bytes - found.arena_bytes - found.io_bytes
