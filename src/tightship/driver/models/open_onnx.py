"""ONNX models whose files leave lengths unknown, which requests then determine."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tightship.driver.models.deferred_routines import DeferredRoutines
from tightship.driver.models.loaded import Loaded
from tightship.driver.models.loader import Loader
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.routine import GraphStage, Routine
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.elements import end_type
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.status import failure
from tightship.frontend.onnx import OnnxFile
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
