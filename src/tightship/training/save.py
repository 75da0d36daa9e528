"""Writes a model's file with other weights."""

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from numpy.typing import NDArray

from tightship.atomic_file import draft
from tightship.engine.compile.compile_graph import ModelSource
from tightship.errors import InputError
from tightship.loading.opening import is_onnx
from tightship.safetensors import bytes_of

if TYPE_CHECKING:
    from onnx import GraphProto, TensorProto

Array = NDArray[Any]

FILE_BYTES_MAX = 2_000_000_000
"""Most bytes of weights in one protobuf message, which must stay below 2 GiB as a whole."""
ALIGNMENT_BYTES = 64
"""Alignment of tensors in the data file of a model."""


def saving(model: ModelSource) -> Callable[[Mapping[str, Array], str | PathLike[str]], None]:
    """Make a function that writes weights into a copy of a model's file.

    A model that was exported for training is written as one for inference.
    """

    def save(weights: Mapping[str, Array], path: str | PathLike[str]) -> None:
        if not is_onnx(model):
            raise InputError(
                "The model did not come from an ONNX file; copy `Trainer.weights()` into the "
                "program instead, or save them by `Trainer.save_checkpoint`."
            )
        _save(model, weights, Path(path))

    return save


def _save(source: str | PathLike[str] | bytes, weights: Mapping[str, Array], path: Path) -> None:
    import onnx
    from onnx.external_data_helper import uses_external_data

    if isinstance(source, bytes):
        model, folder = onnx.load_from_string(source), Path()
    else:
        model, folder = onnx.load(source, load_external_data=False), Path(source).parent
    trained = {name: tensor for name, tensor in _tensors(model.graph) if name in weights}
    missing = [name for name in weights if name not in trained]
    if missing:
        raise InputError(
            f"`{missing[0]}` is not a tensor of the model's file, so it cannot be saved there; use "
            "`Trainer.weights()`."
        )
    _put_out_of_training(model.graph)
    outside = [(name, each) for name, each in _tensors(model.graph) if uses_external_data(each)]
    if not outside and sum(array.nbytes for array in weights.values()) <= FILE_BYTES_MAX:
        for name, tensor in trained.items():
            _fill(tensor, weights[name])
            tensor.raw_data = bytes_of(weights[name]).tobytes()
        with draft(path) as file:
            file.write(model.SerializeToString())
        return
    beside = path.with_name(f"{path.name}.data")
    with draft(path) as file, draft(beside) as data:
        for name, tensor in trained.items():
            _fill(tensor, weights[name])
            _put_beside(tensor, bytes_of(weights[name]), data, beside.name)
        for name, tensor in outside:
            if name not in trained:
                _copy_beside(tensor, folder, data, beside.name)
        file.write(model.SerializeToString())


def _put_out_of_training(graph: "GraphProto") -> None:
    """Switch dropouts off, and make batch normalizations read their running statistics."""
    from onnx.numpy_helper import to_array

    nodes = [node for each in _graphs(graph) for node in each.node]
    read = {name for node in nodes for name in node.input}
    read.update(output.name for each in _graphs(graph) for output in each.output)
    modes = {node.input[2] for node in nodes if node.op_type == "Dropout" and node.input[2:]}
    on = {name for name, each in _tensors(graph) if name in modes and to_array(each).any()}
    for node in nodes:
        if node.op_type == "Dropout" and not on.isdisjoint(node.input[2:]):
            del node.input[2:]
        elif node.op_type == "BatchNormalization" and read.isdisjoint(node.output[1:]):
            kept = [each for each in node.attribute if each.name != "training_mode"]
            del node.attribute[:], node.output[1:]
            node.attribute.extend(kept)


def _graphs(graph: "GraphProto") -> Iterator["GraphProto"]:
    """Yield a graph, and the graphs of its nodes."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _graphs(body)


def _tensors(graph: "GraphProto") -> Iterator[tuple[str, "TensorProto"]]:
    """Yield initializers and tensors of nodes, in bodies too, by the names of their values."""
    for each in _graphs(graph):
        for tensor in each.initializer:
            yield tensor.name, tensor
        for node in each.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    yield (node.output[0] if node.op_type == "Constant" else ""), attribute.t


def _fill(tensor: "TensorProto", array: Array) -> None:
    """Give a tensor an array's type and shape, without elements."""
    from onnx.helper import np_dtype_to_tensor_dtype

    name = tensor.name
    tensor.Clear()
    tensor.name, tensor.data_type = name, np_dtype_to_tensor_dtype(array.dtype)
    tensor.dims.extend(array.shape)


def _copy_beside(tensor: "TensorProto", folder: Path, data: BinaryIO, location: str) -> None:
    """Copy a tensor that is not trained from the old data file to the new one."""
    from onnx.external_data_helper import load_external_data_for_tensor

    load_external_data_for_tensor(tensor, str(folder))
    content = memoryview(tensor.raw_data)
    tensor.ClearField("raw_data")
    _put_beside(tensor, content, data, location)


def _put_beside(tensor: "TensorProto", content: memoryview, data: BinaryIO, location: str) -> None:
    offset = -(-data.tell() // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    data.seek(offset)
    data.write(content)
    tensor.data_location = tensor.EXTERNAL
    del tensor.external_data[:]
    entries = {"location": location, "offset": offset, "length": len(content)}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=str(value))
