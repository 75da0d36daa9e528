"""Assigns the shapes of `tightship serve --shape` to models."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tightship.errors import InputError, TightshipError
from tightship.graph import Shape, agrees
from tightship.loading.input_shapes import named_dimensions
from tightship.loading.opening import open_model

Given = Sequence[tuple[str, tuple[int, ...]]]
"""Shapes by `INPUT`, for every model with an input that accepts the shape, or by `MODEL:INPUT`.

A shape of one length may have the name of a dimension instead of an input's.
"""


def shapes_of(name: str, file: Path, given: Given) -> dict[str, tuple[int, ...]]:
    """Return the given shapes that apply to a model; later ones and those of the model alone win.

    Args:
        name: Name of the model.
        file: File of the model; if it cannot be read, loading it reports the reason.
        given: The shapes.
    """
    try:
        inputs, prefix = _inputs(file) if given else {}, f"{name}:"
    except TightshipError:
        return {}
    dimensions = named_dimensions(inputs)

    def names(key: str, shape: tuple[int, ...]) -> bool:
        return len(shape) == 1 and key in dimensions - inputs.keys()

    for_all = {
        key: each
        for key, each in given
        if (key in inputs and agrees(each, inputs[key])) or names(key, each)
    }
    own = [(key.removeprefix(prefix), each) for key, each in given if key.startswith(prefix)]
    return for_all | {key: each for key, each in own if key in inputs or names(key, each)}


def check_used(files: Mapping[str, Path], given: Given) -> None:
    """Check that each shape applies to a model.

    Raises:
        InputError: A shape applies to no model.
        FormatError: A shape applies to none of the models that can be read.
    """
    for key, shape in given:
        if not any(shapes_of(name, file, [(key, shape)]) for name, file in files.items()):
            inputs = [f"`{name}:{each}`" for name in files for each in _inputs(files[name])]
            raise InputError(
                f"`--shape {key}={'x'.join(map(str, shape))}` fits no input of an ONNX model that "
                f"is served; there are {', '.join(inputs) or 'none'}."
            )


def _inputs(file: Path) -> Mapping[str, Shape | None]:
    """Return the inputs of an ONNX model as its file declares them; none of other files.

    Raises:
        FormatError, InputError: The file cannot be read.
    """
    if file.suffix != ".onnx":
        return {}
    try:
        found = file.stat()
    except OSError:
        return open_model(file).declared
    return _declared(file, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1024)
def _declared(file: Path, *_: int) -> Mapping[str, Shape | None]:
    """Return the inputs of a file, cached while its time and size stay the same."""
    return open_model(file).declared
