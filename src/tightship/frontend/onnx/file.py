"""Entry point: an ONNX model file, or its bytes, as a graph."""

import copy
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tightship._core import release_code
from tightship.errors import FormatError, InputError
from tightship.graph import Graph, MappedFile, Shape
from tightship.public_calls import public_call

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

    from tightship.frontend.onnx.functions import Functions
    from tightship.frontend.onnx.infer import Inference
    from tightship.frontend.onnx.layers import Layers
    from tightship.frontend.onnx.schema import Opsets, Schemas
    from tightship.frontend.onnx.tensor import Tensors

NO_FILES: Mapping[str, MappedFile] = {}


@dataclass(frozen=True, slots=True)
class Parsed:
    """A model file parsed: its messages without the bytes of weights."""

    model: "ModelProto"
    opsets: "Opsets"
    functions: "Functions"
    tensors: "Tensors"
    inference: "tuple[Inference, Schemas] | None" = None
    """Types that are known from other graphs; None for a model of which one graph is made."""


class OnnxFile:
    """A model file; each graph made of it is for some shapes of its inputs.

    The bytes of its weights stay in the file, mapped. What was parsed is dropped once a graph was
    made of it, and parsed again for the next one: few models need a second graph, and its messages
    would stay as long as the model is loaded. A part of a model keeps it, which is small.
    """

    def __init__(
        self, file: MappedFile, path: Path | None, given: Mapping[str, MappedFile] = NO_FILES
    ) -> None:
        """Parse a file; external data is beside its `path`, or in `given` files if it has none.

        Raises:
            FormatError: The file is not an ONNX model.
        """
        from tightship.frontend.onnx.external import ExternalFiles

        self._file = file
        self._external = ExternalFiles(path, given)
        self._begin()

    _is_part = False
    _layers: "Layers | None" = None
    _kept: Parsed | None = None

    def _begin(self) -> None:
        with self._named():
            self._keep(self._parse())

    def _keep(self, parsed: Parsed) -> None:
        self._kept = parsed
        self._declared = _declared(parsed.model)
        self._declared_outputs = _shapes_of(parsed.model.graph.output)

    @property
    def declared(self) -> dict[str, Shape | None]:
        """Declared shapes of the inputs; None for an unknown rank and for non-tensors.

        An unknown dimension is the name of a symbol, or None.
        """
        return dict(self._declared)

    @property
    def declared_outputs(self) -> dict[str, Shape | None]:
        """Declared shapes of the outputs, as `declared` has those of the inputs."""
        return dict(self._declared_outputs)

    def output_shapes(self) -> dict[str, Shape | None]:
        """Return the shapes of the outputs that hold for all shapes of the inputs.

        Raises:
            GraphError: A node can be typed for known shapes only.
        """
        graph = self.graph(None, allow_symbolic=True)
        return {name: graph.value(name).shape for name in graph.outputs}

    def data_files(self) -> tuple[Path, ...]:
        """Return the files of external data.

        Raises:
            FormatError: A tensor names one outside the model's folder.
        """
        with self._named():
            return self._external.files_of(self._parsed().model)

    @property
    def usual_lengths(self) -> Mapping[str, int]:
        """Lengths by dimension to load the model with if its caller gives none; often empty."""
        return {}

    def named_data_files(self) -> dict[str, Path]:
        """Return the files of external data by their names in the model.

        Raises:
            FormatError: A tensor names one outside the model's folder.
        """
        with self._named():
            return self._external.named_files_of(self._parsed().model)

    @property
    def longest_context(self) -> int | None:
        """Most tokens of a text that the model was trained with; None if the file does not say."""
        return None

    def check_trained(self, context: int) -> None:
        """Do nothing: the file does not say what texts the model was trained with."""

    def check_whole(self) -> None:
        """Do nothing: parts of a file that is cut are missed when it is opened."""

    def layer_count(self) -> int:
        """Return how many equal layers the model has; 0 if fewer than four."""
        from tightship.frontend.onnx.layers import layers_of  # for plans of sessions alone

        with self._named():
            parsed = self._parsed()
            self._layers = layers_of(parsed.model.graph, parsed.tensors)
        return 0 if self._layers is None else self._layers.count

    def with_layers(self, count: int) -> "OnnxFile":
        """Return the model with fewer of the layers that `layer_count` found.

        Graphs of it, and of models with still fewer of its layers, share what is known of types.

        Args:
            count: Layers that are left, two at least.
        """
        from tightship.frontend.onnx.infer import Inference
        from tightship.frontend.onnx.layers import leave_out
        from tightship.frontend.onnx.schema import Schemas

        assert self._layers is not None, "layers have not been found"
        found = copy.copy(self)
        found._is_part = True
        parsed = self._parsed()
        model = type(parsed.model)()
        model.CopyFrom(parsed.model)
        leave_out(model.graph, self._layers, count)
        found._layers = replace(self._layers, count=count)
        inference = parsed.inference or (Inference(model.ir_version), Schemas())
        with found._named():
            found._keep(replace(parsed, model=model, inference=inference))
        return found

    def with_open_batch(self, shapes: Mapping[str, Sequence[int]] | None = None) -> "OnnxFile":
        """Return the model with an open batch, and with its other lengths as they are for shapes.

        Args:
            shapes: Shapes of the inputs that the file leaves open.

        Raises:
            FixedBatchError: A node does not keep the samples of a batch apart.
        """
        from tightship.frontend.onnx.open_batch import open_batch

        graph = self.graph(shapes)
        found = copy.copy(self)
        found._is_part = True
        parsed = self._parsed()
        model = type(parsed.model)()
        model.CopyFrom(parsed.model)
        with found._named():
            open_batch(model.graph, graph)
            found._keep(replace(parsed, model=model))
        return found

    def graph(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        *,
        allow_symbolic: bool = False,
    ) -> Graph:
        """Return the graph for these shapes; arguments and errors as for `read`.

        Raises:
            FormatError, GraphError, InputError: As from `read`.
        """
        from tightship.frontend.onnx.functions import Origin
        from tightship.frontend.onnx.infer import Inference
        from tightship.frontend.onnx.inputs import bind_inputs
        from tightship.frontend.onnx.reader import Reader
        from tightship.frontend.onnx.schema import Schemas

        bind = partial(bind_inputs, shapes=shapes or {}, allow_symbolic=allow_symbolic)
        with self._named():
            parsed = self._parsed()
            self._kept = parsed if self._is_part else None
            inference = parsed.inference or (Inference(parsed.model.ir_version), Schemas())
            reader = Reader(parsed.tensors, parsed.functions, *inference)
            return reader.model_graph(parsed.model.graph, Origin(parsed.opsets), bind)

    def _parsed(self) -> Parsed:
        """Return the parsed model; parse it again once a graph has been made of it."""
        return self._kept or self._parse()

    def _parse(self) -> Parsed:
        from tightship.frontend.onnx.cache_lengths import settle_cache_lengths
        from tightship.frontend.onnx.functions import Functions
        from tightship.frontend.onnx.schema import model_opsets
        from tightship.frontend.onnx.skeleton import read_skeleton
        from tightship.frontend.onnx.tensor import Tensors

        file = self._file
        skeleton = read_skeleton(file.bytes_at(0, file.size_bytes), str(file.path))
        settle_cache_lengths(skeleton.model.graph)
        opsets, functions = model_opsets(skeleton.model), Functions()
        functions.add(skeleton.model.functions)
        tensors = Tensors(file, skeleton.payloads, self._external)
        return Parsed(skeleton.model, opsets, functions, tensors)

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in errors, and drop its pages and the parser's code at the end."""
        try:
            yield
        except UnicodeDecodeError as error:
            raise FormatError(
                f"`{self._file.path}` has a name that is not UTF-8: {error}."
            ) from None
        finally:
            self._release()
            _release_code()

    def _release(self) -> None:
        self._file.release()


@public_call
def open_file(path: str | os.PathLike[str]) -> OnnxFile:
    """Open an ONNX model file; external data is searched for in its folder.

    Raises:
        FormatError: The file is not an ONNX model.
        InputError: The file does not exist.
    """
    path = Path(path)
    if not path.is_file():
        what = "is not a file" if path.exists() else "does not exist"
        raise InputError(f"The model `{path}` {what}.")
    try:
        file = MappedFile(path)
    except OSError as error:
        raise InputError(f"The model `{path}` cannot be opened: {error.strerror}.") from None
    return OnnxFile(file, path)


@public_call
def open_bytes(
    data: bytes | memoryview,
    external: Mapping[str, MappedFile] = NO_FILES,
    path: Path = Path("<bytes>"),
) -> OnnxFile:
    """Open a serialized ONNX model; constants refer to `data`, which must not change.

    Args:
        data: Contents of a model file.
        external: Files of external data, by their names in the model; others are refused.
        path: Name of the model in messages.

    Raises:
        FormatError: The bytes are not an ONNX model.
    """
    return OnnxFile(MappedFile.of_bytes(data, path), None, external)


@public_call
def read(
    path: str | os.PathLike[str],
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    allow_symbolic: bool = False,
) -> Graph:
    """Read an ONNX model; its weights stay in the file, mapped.

    Args:
        path: Model file. External data is searched for in its folder.
        shapes: Lengths of all dimensions of an input, by its name.
        allow_symbolic: Whether unknown input dimensions stay symbolic.

    Raises:
        FormatError: The file is not an ONNX model, or a tensor's bytes do not fit.
        GraphError: The graph is not valid, or cannot be typed.
        InputError: The file does not exist, or the shapes do not fit the inputs.
    """
    return open_file(path).graph(shapes, allow_symbolic=allow_symbolic)


@public_call
def read_bytes(
    data: bytes | memoryview,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    allow_symbolic: bool = False,
) -> Graph:
    """Read a serialized ONNX model; constants refer to `data`, which must not change.

    Args:
        data: Contents of a model file. External data is refused.
        shapes: Lengths of all dimensions of an input, by its name.
        allow_symbolic: Whether unknown input dimensions stay symbolic.

    Raises:
        FormatError: The bytes are not an ONNX model, or a tensor's bytes do not fit.
        GraphError: The graph is not valid, or cannot be typed.
        InputError: The shapes do not fit the inputs.
    """
    return open_bytes(data).graph(shapes, allow_symbolic=allow_symbolic)


def _declared(model: "ModelProto") -> dict[str, Shape | None]:
    """Shapes of a model's inputs, constants left out."""
    constants = {tensor.name for tensor in model.graph.initializer}
    constants.update(sparse.values.name for sparse in model.graph.sparse_initializer)
    return _shapes_of([v for v in model.graph.input if v.name not in constants])


def _shapes_of(values: "Iterable[ValueInfoProto]") -> dict[str, Shape | None]:
    from tightship.frontend.onnx.types import shape_of

    return {value.name: shape_of(value.type) for value in values}


def _release_code() -> None:
    """Drop the pages of onnx's and protobuf's code after reading."""
    for name in ("onnx.onnx_cpp2py_export", "google._upb._message"):
        path = getattr(sys.modules.get(name), "__file__", None)
        if path is not None:
            release_code(path)
