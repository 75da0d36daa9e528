"""Models that a driver has loaded: prepared from pools, run on pools and buffers."""

import fcntl
import logging
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship._core import StopFlag
from tightship.driver.effects import PrepareModel, Run, RunArgument
from tightship.driver.events import PrepareFinished, RunFinished
from tightship.driver.protocol.replies import OutputShape, Timing
from tightship.driver.rim.descriptor import seals_of
from tightship.driver.rim.mappings import Array, Bytes, Mappings
from tightship.driver.rules.dimensions import is_specified
from tightship.driver.rules.elements import dtype_of, value_type
from tightship.driver.rules.model import FileFormat, ModelFile, ModelName
from tightship.driver.rules.operand_type import ValueType
from tightship.driver.rules.pools import Pool, PoolMode
from tightship.driver.rules.status import ErrorStatus, failure
from tightship.errors import DriverError, StoppedError, TightshipError
from tightship.graph import DType
from tightship.loading import load
from tightship.model import Model

_LOG = logging.getLogger(__name__)
_OUR_FAULT = "The model met an error of the driver; its log has it."
_SEALED = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_WRITE


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model with the types of what it takes and gives, in order."""

    model: Model
    inputs: tuple[ValueType, ...]
    outputs: tuple[ValueType, ...]


def loaded(model: Model) -> Loaded:
    """A model as the driver offers it.

    Raises:
        DriverError: GENERAL_FAILURE: an input or output is of a type that NNAPI does not have.
    """
    plan = model.plan
    inputs = [(name, *model.input_types[name]) for name in model.input_names]
    outputs = [(name, *model.output_types[name]) for name in model.output_names]
    return Loaded(model, _types(plan.model, inputs), _types(plan.model, outputs))


def _types(
    model: str, row: Sequence[tuple[str, DType, tuple[int, ...] | None]]
) -> tuple[ValueType, ...]:
    types = []
    for name, element, shape in row:
        if shape is None:
            raise failure(f"The shape of `{name}` of `{model}` depends on data.")
        types.append(value_type(element.numpy, shape, name))
    return tuple(types)


class Models:
    """The models of a driver by number; those it was started with have a name too."""

    def __init__(self, mappings: Mappings, named: Mapping[str, Loaded]) -> None:
        self._mappings = mappings
        self._named = named
        self._models: dict[int, Loaded] = {}
        self.buffers: dict[int, Bytes] = {}

    def prepare(self, asked: PrepareModel) -> PrepareFinished:
        """Load a model."""
        try:
            found = self._load(asked)
        except DriverError as error:
            return _refused(asked, ErrorStatus(error.status), str(error))
        except (MemoryError, OSError) as error:
            return _refused(asked, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, str(error))
        except TightshipError as error:
            return _refused(asked, ErrorStatus.GENERAL_FAILURE, str(error))
        except Exception as error:  # noqa: BLE001 - a client's model must not end the driver
            _report("preparing", error)
            return _refused(asked, ErrorStatus.GENERAL_FAILURE, _OUR_FAULT)
        self._models[asked.model] = found
        return PrepareFinished(asked.model, ErrorStatus.NONE, found.inputs, found.outputs)

    def _load(self, asked: PrepareModel) -> Loaded:
        source = asked.source
        if isinstance(source, ModelName):
            if source.name not in self._named:
                raise failure("The driver was not started with a model of that name.")
            return self._named[source.name]
        if not isinstance(source, ModelFile) or source.file_format == FileFormat.OPERANDS:
            raise failure("This driver runs ONNX and prepared models, none built of operands.")
        if source.externals:
            raise failure("An ONNX model with external files cannot come in pools; prepare it.")
        pool = asked.pools[0]
        if source.file_format == FileFormat.PREPARED:
            model = load(_mapped_path(source, pool))
        else:
            data = self._mappings.read(pool, source.offset_bytes, source.length_bytes)
            model = load(data.tobytes())
        try:
            return loaded(model)
        except DriverError:
            model.close()
            raise

    def drop(self, number: int) -> None:
        """Give a model's memory back; one with a name stays loaded."""
        gone = self._models.pop(number, None)
        if gone is not None and gone not in self._named.values():
            gone.model.close()

    def run(self, asked: Run, stop: StopFlag) -> RunFinished:
        """Run a model on what a request names."""
        start_ns = time.monotonic_ns()
        try:
            status, shapes, device_ns = self._run(asked, self._models[asked.model], stop)
        except DriverError as error:
            return RunFinished(asked.execution, ErrorStatus(error.status))
        except StoppedError:  # nothing but a deadline, or that nobody waits
            return RunFinished(asked.execution, ErrorStatus.MISSED_DEADLINE_TRANSIENT)
        except (MemoryError, OSError):
            return RunFinished(asked.execution, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
        except TightshipError:
            return RunFinished(asked.execution, ErrorStatus.GENERAL_FAILURE)
        except Exception as error:  # noqa: BLE001 - a client's values must not end the driver
            _report("running", error)
            return RunFinished(asked.execution, ErrorStatus.GENERAL_FAILURE)
        timing = Timing(device_ns, time.monotonic_ns() - start_ns)
        return RunFinished(asked.execution, status, shapes, timing)

    def _run(
        self, asked: Run, found: Loaded, stop: StopFlag
    ) -> tuple[ErrorStatus, tuple[OutputShape, ...], int]:
        model = found.model
        inputs = {
            name: self._input(argument, value)
            for name, argument, value in zip(
                model.input_names, asked.inputs, found.inputs, strict=True
            )
        }
        ends = zip(asked.outputs, found.outputs, strict=True)
        places = dict(zip(model.output_names, ends, strict=True))
        direct = {
            name: array
            for name, (argument, value) in places.items()
            if (array := self._place(argument, value)) is not None
        }
        begin_ns = time.monotonic_ns()
        results = model.run(inputs, outputs=direct, stop=stop)
        device_ns = time.monotonic_ns() - begin_ns
        shapes = []
        for name, (argument, _) in places.items():
            fits = name in direct or self._store(argument, results[name])
            shapes.append(OutputShape(results[name].shape, fits))
        is_whole = all(shape.is_sufficient for shape in shapes)
        status = ErrorStatus.NONE if is_whole else ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
        return status, tuple(shapes), device_ns

    def _input(self, argument: RunArgument, value: ValueType) -> Array:
        """An input where it is.

        Integers are copied, as are misaligned values: a client may write to its pool while the
        model runs, and what an index was checked for must stay so.
        """
        dtype = dtype_of(value)
        if argument.token:
            data = self.buffers[argument.token]
        elif argument.pool is not None and argument.location is not None:
            location = argument.location
            data = self._mappings.read(argument.pool, location.offset_bytes, location.length_bytes)
        else:
            raise failure("Every input of this model needs a value.")
        if dtype.kind == "b":
            data = data != 0
        elif dtype.kind != "f" or data.ctypes.data % dtype.alignment:
            data = data.copy()
        return data.view(dtype).reshape(argument.dimensions)

    def _place(self, argument: RunArgument, value: ValueType) -> Array | None:
        """Where a model may write an output itself; None if it must be copied there."""
        dtype, pool, location = dtype_of(value), argument.pool, argument.location
        if (
            pool is None
            or location is None
            or pool.mode is not PoolMode.SEALED
            or dtype.kind != "f"
            or not is_specified(argument.dimensions, is_scalar=value.is_scalar)
        ):
            return None
        size_bytes = dtype.itemsize * int(np.prod(argument.dimensions, dtype=np.int64))
        data = self._mappings.map(pool)[location.offset_bytes :]
        if location.length_bytes < size_bytes or data.ctypes.data % dtype.alignment:
            return None
        return data[:size_bytes].view(dtype).reshape(argument.dimensions)

    def _store(self, argument: RunArgument, result: Array) -> bool:
        """Put an output where it was to go; False if it is too large."""
        data = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
        if argument.token:
            if data.size > argument.room_bytes:
                return False
            self.buffers[argument.token] = data.copy()
        elif argument.pool is not None and argument.location is not None:
            if data.size > argument.location.length_bytes:
                return False
            self._mappings.write(argument.pool, argument.location.offset_bytes, data)
        return True


def _mapped_path(source: ModelFile, pool: Pool) -> str:
    """A name for the file of a prepared model, which is mapped as long as the model is loaded."""
    if seals_of(pool.handle) & _SEALED != _SEALED:
        raise failure("A prepared model is mapped; seal its file with F_SEAL_SHRINK and _WRITE.")
    whole = os.fstat(pool.handle).st_size
    if source.offset_bytes or pool.extent.offset_bytes or source.length_bytes != whole:
        raise failure("A prepared model is a whole file, not a part of one.")
    return f"/proc/self/fd/{pool.handle}"


def _report(doing: str, error: Exception) -> None:
    """Tell the log of a mistake of ours, not of the client's."""
    _LOG.error("An error came up in %s a client's model.", doing, exc_info=error)


def _refused(asked: PrepareModel, status: ErrorStatus, message: str) -> PrepareFinished:
    return PrepareFinished(asked.model, status, message=message[:1000])
