"""Loading of what clients prepare: ONNX files, prepared models, models of operands."""

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.pool_file import is_steady, path_of, steady_bytes, steady_file
from tightship.driver.models.deferred_routines import DeferredRoutines
from tightship.driver.models.loaded import Loaded, loaded
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.models.operand_models import operand_file, operand_model
from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.routine import GraphStage, Routine
from tightship.driver.printable import printable
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.elements import end_type
from tightship.driver.types.model import FileFormat, Model, ModelFile, NamedFile
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import Pool
from tightship.driver.types.status import failure
from tightship.errors import DriverError
from tightship.frontend.onnx import OnnxFile, open_bytes
from tightship.graph import Graph


def leaves_lengths_open(file: OnnxFile) -> bool:
    """Whether the shapes of inputs are needed to plan a model."""
    rows = file.declared.values()
    return any(row is None or not all(isinstance(each, int) for each in row) for row in rows)


def open_onnx(file: OnnxFile, loader: Loader) -> Loaded:
    """Return a model that is loaded on the first request, and again for other lengths.

    Raises:
        DriverError: GENERAL_FAILURE: the driver lacks the type of an input or output.
        TightshipError: The model is not valid.
    """
    declared = file.graph(None, allow_symbolic=True)
    reading = threading.Lock()

    def routine(dimensions: Mapping[int, Dimensions]) -> Routine:
        shapes = {name: dimensions[at] for at, name in enumerate(declared.inputs)}
        with reading:
            return _routine(file.graph(shapes))

    inputs, outputs = (_types(declared, names) for names in (declared.inputs, declared.outputs))
    once, rows = loader.once(), [each.dimensions for each in inputs]
    return Loaded(OpenOperands(routine, rows, once, DeferredRoutines(once).run), inputs, outputs)


def _routine(graph: Graph) -> Routine:
    tensors: dict[int, Tensor] = {}
    for number, name in enumerate((*graph.inputs, *graph.outputs)):
        value = graph.value(name)
        if value.dtype is None or not value.is_static:
            raise failure(f"The shape of `{name}` depends on data; it must not.")
        tensors[number] = Tensor(name, value.dtype, value.static_shape)
    count = len(graph.inputs)
    ends = tuple(range(count)), tuple(range(count, len(tensors)))
    return Routine((GraphStage(graph, *ends),), *ends, tensors, {})


def _types(graph: Graph, names: Sequence[str]) -> tuple[ValueType, ...]:
    """Return the types of values; unknown lengths are 0, and dimensions of unknown rank empty."""
    types = []
    for name in names:
        value = graph.value(name)
        if value.dtype is None:
            raise failure(f"The element type of `{name}` is unknown; declare it in the model.")
        row = tuple(each if isinstance(each, int) else 0 for each in value.shape or ())
        known = end_type(value.dtype.numpy, (0,) if value.shape is None else row, name)
        types.append(replace(known, dimensions=row))
    return tuple(types)


ONNX_BYTES_MAX = (1 << 31) - 1
"""Largest message of protocol buffers."""


def opened(
    source: Model | ModelFile, pools: Sequence[Pool], mappings: Mappings, loader: Loader
) -> Loaded:
    """Load a checked source; `pools` are those it names, in its order.

    Raises:
        DriverError: With its status.
        TightshipError: The model is not valid, or cannot be run.
    """
    if isinstance(source, Model):
        return operand_model(source, pools, mappings, loader)
    if source.file_format == FileFormat.OPERANDS:
        return operand_file(source, pools, mappings, loader)
    graph: Callable[[], Graph] | None = None
    if source.file_format == FileFormat.PREPARED:
        _check_prepared(source, pools[0])
        model = loader.prepared(pools[0].handle)
    else:
        file = _onnx(source, pools, mappings)
        if leaves_lengths_open(file):
            return open_onnx(file, loader)
        graph = partial(file.graph, None)
        model = loader.model(graph())
    try:
        return replace(loaded(model), graph=graph)
    except DriverError:
        model.close()
        raise


def _onnx(source: ModelFile, pools: Sequence[Pool], mappings: Mappings) -> OnnxFile:
    """Open an ONNX model in place if its bytes cannot change, else a copy."""
    if source.length_bytes > ONNX_BYTES_MAX:
        raise failure(
            f"An ONNX model has {source.length_bytes} bytes, more than {ONNX_BYTES_MAX}. Put its "
            "weights into external data."
        )
    data = steady_bytes(mappings, pools[0], source.offset_bytes, source.length_bytes)
    files = {
        each.name: steady_file(mappings, pool)
        for each, pool in zip(source.externals, pools[1:], strict=True)
    }
    if isinstance(source, NamedFile) and source.name:
        return open_bytes(data, files, Path(printable(source.name)))
    return open_bytes(data, files, path_of(pools[0]))


def _check_prepared(source: ModelFile, pool: Pool) -> None:
    if not is_steady(pool):
        raise failure(
            "The file of a prepared model must be sealed: F_SEAL_SHRINK and F_SEAL_WRITE."
        )
    whole = os.fstat(pool.handle).st_size
    if source.offset_bytes or pool.extent.offset_bytes or source.length_bytes != whole:
        raise failure("A prepared model must be a whole file, not a part of one.")
