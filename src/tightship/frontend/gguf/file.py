"""A GGUF file as the ONNX model that it stands for, a decoder or an encoder."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import ModelProto, TensorProto

from tightship.errors import GraphError
from tightship.frontend.gguf.decoder import decoder_of
from tightship.frontend.gguf.encoder import encoder_of
from tightship.frontend.gguf.encoder_parameters import read_encoder_parameters
from tightship.frontend.gguf.equal_layers import with_records_once
from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.parameters import read_parameters
from tightship.frontend.gguf.pooling import BERT
from tightship.frontend.gguf.shards import Contents, contents_of, open_shards
from tightship.frontend.gguf.vocabulary import longest_context, warn_untrained
from tightship.frontend.gguf.weights import Weights
from tightship.frontend.onnx.external import ExternalFiles
from tightship.frontend.onnx.file import OnnxFile, Parsed
from tightship.frontend.onnx.functions import Functions
from tightship.frontend.onnx.schema import model_opsets
from tightship.frontend.onnx.tensor import Tensors
from tightship.graph import Constant, Graph, MappedFile, Shape
from tightship.graph.few_layers import FewLayers


@dataclass(frozen=True, slots=True)
class _GgufTensors(Tensors):
    """Sources of tensors' bytes: the GGUF file, or the tensor itself."""

    stored: Mapping[str, Constant] = field(default_factory=dict)

    def constant(self, tensor: TensorProto, name: str) -> Constant:
        """Return the constant of a tensor."""
        found = self.stored.get(name)
        return Tensors.constant(self, tensor, name) if found is None else found


class GgufFile(OnnxFile):
    """A GGUF model file, with the shards beside it; each graph made of it is for some lengths.

    The bytes of its weights stay in the file, mapped. It is an ONNX file to its readers, whose
    nodes were not in it: the metadata and the names of the tensors tell them.
    """

    def __init__(self, contents: Contents) -> None:
        """Write the model of a file.

        Raises:
            FormatError: Metadata and tensors do not fit each other.
            GraphError: Architecture, type or option of the model is not supported.
        """
        self._contents = contents
        self._file = contents.files[0][0]
        self._external = ExternalFiles(None)
        self._begin()

    def _begin(self) -> None:
        with self._named():
            parsed, layers = self._written(once=True)
            self._keep(parsed)
            self._kept = None
            if layers is not None:
                self._declared_outputs = layers.outputs(self._declared_outputs)

    def output_shapes(self) -> dict[str, Shape | None]:
        """Return the declared shapes of the outputs, which are those of every graph."""
        return self.declared_outputs

    def graph(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        *,
        allow_symbolic: bool = False,
    ) -> Graph:
        """Return the graph for these shapes; of equal layers few are read.

        Raises:
            FormatError, GraphError, InputError: As from `OnnxFile.graph`.
        """
        if self._is_part:
            return with_records_once(super().graph(shapes, allow_symbolic=allow_symbolic))
        with self._named():
            self._kept, layers = self._written(once=True)
            found = super().graph(shapes, allow_symbolic=allow_symbolic)
            if layers is None or len(layers.ends) == len(layers.stands):
                return found if layers is None else with_records_once(found)
            few = replace(with_records_once(found), layers=layers)
            whole, _ = layers.whole(few)
            object.__setattr__(whole, "few", few)
            return whole

    def data_files(self) -> tuple[Path, ...]:
        """Return the other shards of the model."""
        return tuple(Path(file.path) for file, _ in self._contents.files[1:])

    def named_data_files(self) -> dict[str, Path]:
        """Return the other shards of the model by their names."""
        return {path.name: path for path in self.data_files()}

    @property
    def longest_context(self) -> int | None:
        """Most tokens of a text that the model was trained with; None if the file does not say."""
        return longest_context(self._contents.metadata)

    def check_trained(self, context: int) -> None:
        """Warn if a context is longer than the texts that the model was trained with."""
        warn_untrained(context, self.longest_context)

    @property
    def usual_lengths(self) -> Mapping[str, int]:
        """Lengths of one text of the whole context, for an encoder."""
        context = self.longest_context
        if self._contents.metadata.text("general.architecture", "") != BERT or context is None:
            return {}
        return {"batch_size": 1, "sequence_length": context}

    def check_whole(self) -> None:
        """Check that no shard is cut, as by a download that has not ended.

        Raises:
            FormatError: A tensor lies beyond the end of its file.
        """
        self._contents.check_whole()

    def _parse(self) -> Parsed:
        return self._written()[0]

    def _written(self, *, once: bool = False) -> tuple[Parsed, FewLayers | None]:
        """Write the ONNX model, with all its layers or, of a decoder, few of equal ones."""
        contents, nodes = self._contents, Nodes()
        kind = contents.metadata.text("general.type", "model")
        if kind != "model":
            raise GraphError(
                f"`{contents.metadata.path}` is a GGUF file of the type `{kind}`, which is not "
                "supported; supported is `model`."
            )
        model, layers = _model_of(Weights(contents, nodes), once=once)
        tensors = _GgufTensors(self._file, {}, self._external, nodes.stored)
        return Parsed(model, model_opsets(model), Functions(), tensors), layers

    def _release(self) -> None:
        self._contents.release()


def _model_of(weights: Weights, *, once: bool) -> tuple[ModelProto, FewLayers | None]:
    """Write the graph of a file's architecture; None for layers of which none was left out.

    Raises:
        FormatError: Metadata and tensors do not fit each other.
        GraphError: The architecture or one of its options is not supported.
    """
    metadata = weights.contents.metadata
    if metadata.text("general.architecture") == BERT:
        return encoder_of(weights, read_encoder_parameters(metadata)), None
    return decoder_of(weights, read_parameters(metadata), once=once)


def open_file(path: str | os.PathLike[str]) -> GgufFile:
    """Open a GGUF model file, and its other shards if it is the first of several.

    Raises:
        FormatError: A file is not GGUF, or not a whole model.
        GraphError: Architecture, type or option of the model is not supported.
        InputError: A file does not exist.
    """
    return GgufFile(open_shards(Path(path)))


def open_bytes(data: bytes | memoryview, path: Path = Path("<bytes>")) -> GgufFile:
    """Open a GGUF model in memory; constants refer to `data`, which must not change.

    Args:
        data: Contents of a model file.
        path: Name of the model in messages.

    Raises:
        FormatError: The bytes are not GGUF, or not a whole model.
        GraphError: Architecture, type or option of the model is not supported.
    """
    return GgufFile(contents_of([MappedFile.of_bytes(data, path)], None))
