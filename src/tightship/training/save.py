"""A model's file written anew with other weights."""

import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.engine.prepare import ModelSource
from tightship.errors import InputError
from tightship.loading.opening import is_onnx

Array = NDArray[Any]

FILE_BYTES_MAX = 2_000_000_000
"""Of weights in one protobuf message, with room for the rest of it."""


def saving(model: ModelSource) -> Callable[[Mapping[str, Array], str | PathLike[str]], None]:
    """How weights of a model are written: into a copy of its file, in place of the old ones."""

    def save(weights: Mapping[str, Array], path: str | PathLike[str]) -> None:
        if not is_onnx(model):
            raise InputError(
                "The model came from no ONNX file; put `Trainer.weights()` where the program has "
                "its own instead."
            )
        _save(model, weights, Path(path))

    return save


def _save(source: str | PathLike[str] | bytes, weights: Mapping[str, Array], path: Path) -> None:
    import onnx
    from onnx import numpy_helper

    if sum(array.nbytes for array in weights.values()) > FILE_BYTES_MAX:
        raise InputError(
            "The weights take more than an ONNX file can hold by itself; take `Trainer.weights()`, "
            "and save them in a format of your own."
        )
    model = onnx.load_from_string(source) if isinstance(source, bytes) else onnx.load(source)
    left = set(weights)
    for tensor in model.graph.initializer:
        if tensor.name in left:
            left.remove(tensor.name)
            array = np.ascontiguousarray(weights[tensor.name])
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in left:
            left.remove(node.output[0])
            (value,) = node.attribute
            value.t.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(weights[node.output[0]])))
    if left:
        raise InputError(
            f"`{min(left)}` is no tensor of the model's file, so it cannot be written there; take "
            "`Trainer.weights()`."
        )
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        onnx.save(model, beside)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
