"""Which models the shapes are for that `tightship serve --shape` is given."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tightship.errors import InputError, TightshipError
from tightship.graph import Shape, agrees
from tightship.loading.opening import open_model

Given = Sequence[tuple[str, tuple[int, ...]]]
"""By `INPUT`, for every model with such an input that may have the shape; or `MODEL:INPUT`."""


def shapes_of(name: str, file: Path, given: Given) -> dict[str, tuple[int, ...]]:
    """Of the shapes that are given, those for a model; for an input the last, of its own if any.

    Args:
        name: Of the model.
        file: That it is in; of one that cannot be read, loading it says why.
        given: Any.
    """
    try:
        inputs, prefix = _inputs(file) if given else {}, f"{name}:"
    except TightshipError:
        return {}
    for_all = {key: each for key, each in given if key in inputs and agrees(each, inputs[key])}
    own = [(key.removeprefix(prefix), each) for key, each in given if key.startswith(prefix)]
    return for_all | {key: each for key, each in own if key in inputs}


def check_used(files: Mapping[str, Path], given: Given) -> None:
    """Check that each shape is for a model.

    Raises:
        InputError: One is for none.
        FormatError: One is for none of those that can be read.
    """
    for key, shape in given:
        if not any(shapes_of(name, file, [(key, shape)]) for name, file in files.items()):
            inputs = [f"`{name}:{each}`" for name in files for each in _inputs(files[name])]
            raise InputError(
                f"`--shape {key}={'x'.join(map(str, shape))}` fits no input of an ONNX model that "
                f"is served; there are {', '.join(inputs) or 'none'}."
            )


def _inputs(file: Path) -> Mapping[str, Shape | None]:
    """Of an ONNX model as its file has them; none of any other.

    Raises:
        FormatError, InputError: It cannot be read.
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
    """While the file stays as it is."""
    return open_model(file).declared
