"""The entry: an ONNX model file, or its bytes, as a graph."""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from tightship._core import release_code
from tightship.errors import FormatError, InputError
from tightship.graph import Graph, MappedFile


def read(
    path: str | os.PathLike[str],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    allow_symbolic: bool = False,
) -> Graph:
    """Read an ONNX model; its weights stay in the file, mapped.

    Args:
        path: The model. External data is looked for in its folder.
        shapes: Lengths of all dimensions of an input, by its name.
        allow_symbolic: Keep input dimensions that nothing binds as symbols.

    Raises:
        FormatError: The file is not an ONNX model, or a tensor's bytes do not fit.
        GraphError: The graph is not valid, or cannot be typed.
        InputError: There is no such file, or the shapes do not fit the inputs.
    """
    path = Path(path)
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"The model `{path}` {what}.")
    try:
        file = MappedFile(path)
    except OSError as error:
        raise InputError(f"The model `{path}` cannot be opened: {error.strerror}.") from None
    return _read(file, path, shapes, allow_symbolic=allow_symbolic)


def read_bytes(
    data: bytes | memoryview,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    allow_symbolic: bool = False,
) -> Graph:
    """Read a serialized ONNX model; constants refer to `data`, which must not change.

    Args:
        data: What a model file would hold. External data is refused.
        shapes: Lengths of all dimensions of an input, by its name.
        allow_symbolic: Keep input dimensions that nothing binds as symbols.

    Raises:
        FormatError: The bytes are not an ONNX model, or a tensor's bytes do not fit.
        GraphError: The graph is not valid, or cannot be typed.
        InputError: The shapes do not fit the inputs.
    """
    file = MappedFile.of_bytes(data, Path("<bytes>"))
    return _read(file, None, shapes, allow_symbolic=allow_symbolic)


def _read(
    file: MappedFile,
    path: Path | None,
    shapes: Mapping[str, Sequence[int]] | None,
    *,
    allow_symbolic: bool,
) -> Graph:
    from tightship.frontend.onnx.external import ExternalFiles
    from tightship.frontend.onnx.functions import Functions, Origin
    from tightship.frontend.onnx.inputs import bind_inputs
    from tightship.frontend.onnx.reader import Reader
    from tightship.frontend.onnx.schema import model_opsets
    from tightship.frontend.onnx.skeleton import read_skeleton
    from tightship.frontend.onnx.tensor import Tensors

    try:
        skeleton = read_skeleton(file.bytes_at(0, file.size_bytes), str(file.path))
        model = skeleton.model
        opsets = model_opsets(model)
        functions = Functions()
        functions.add(model.functions)
        tensors = Tensors(file, skeleton.payloads, ExternalFiles(path))
        bind = partial(bind_inputs, shapes=shapes or {}, allow_symbolic=allow_symbolic)
        reader = Reader(tensors, functions, model.ir_version)
        return reader.model_graph(model.graph, Origin(opsets), bind)
    except UnicodeDecodeError as error:
        raise FormatError(f"`{file.path}` has a name that is not UTF-8: {error}.") from None
    finally:
        file.release()
        _release_code()


def _release_code() -> None:
    """Drop the pages of the code that has done its work."""
    for name in ("onnx.onnx_cpp2py_export", "google._upb._message"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is not None:
            release_code(path)
