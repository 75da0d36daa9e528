"""Models run on pools and buffers."""

import logging
import time
from math import prod

import numpy as np

from tightship._core import StopFlag
from tightship.driver.effects import Run, RunArgument
from tightship.driver.events import RunFinished
from tightship.driver.protocol.replies import OutputShape, Timing
from tightship.driver.rim.device_buffers import DeviceBuffers
from tightship.driver.rim.loaded import Loaded
from tightship.driver.rim.mappings import Array, Bytes, Mappings
from tightship.driver.rim.models import Models
from tightship.driver.rules.dimensions import is_specified
from tightship.driver.rules.elements import dtype_of
from tightship.driver.rules.operand_type import ValueType
from tightship.driver.rules.pools import PoolMode
from tightship.driver.rules.status import ErrorStatus, failure
from tightship.errors import DeadlineError, DriverError, StoppedError, TightshipError

_LOG = logging.getLogger(__name__)


class Runs:
    """Runs of loaded models."""

    def __init__(self, models: Models, mappings: Mappings, buffers: DeviceBuffers) -> None:
        self._models = models
        self._mappings = mappings
        self._buffers = buffers

    def run(self, asked: Run, stop: StopFlag) -> RunFinished:
        """Run a model on what a request names."""
        start_ns = time.monotonic_ns()
        try:
            status, shapes, device_ns = self._run(asked, self._models[asked.model], stop)
        except DriverError as error:
            return RunFinished(asked.execution, ErrorStatus(error.status))
        except (DeadlineError, StoppedError):  # or nobody waits
            return RunFinished(asked.execution, ErrorStatus.MISSED_DEADLINE_TRANSIENT)
        except (MemoryError, OSError):
            return RunFinished(asked.execution, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT)
        except TightshipError:
            return RunFinished(asked.execution, ErrorStatus.GENERAL_FAILURE)
        except Exception as error:  # noqa: BLE001 - a client's values must not end the driver
            _LOG.error("An error came up in running a client's model.", exc_info=error)
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
        results = found.run(inputs, direct, stop, asked.loop_timeout_ns)
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

        Integers in pools are copied, as are misaligned values: a client may write to its pool
        while the model runs, and what an index was checked for must stay so.
        """
        dtype = dtype_of(value)
        if argument.token:
            data = self._buffers[argument.token]
        elif argument.pool is not None and argument.location is not None:
            data = self._mappings.value(argument.pool, argument.location)
        else:
            raise failure("Every input of this model needs a value.")
        if dtype.kind == "b":
            data = data != 0
        elif not argument.token and (dtype.kind != "f" or data.ctypes.data % dtype.alignment):
            data = data.copy()
        return data.view(dtype).reshape(argument.dimensions)

    def _place(self, argument: RunArgument, value: ValueType) -> Array | None:
        """Where a model may write an output itself; None if it must be copied there."""
        if not is_specified(argument.dimensions, is_scalar=value.is_scalar):
            return None
        dtype = dtype_of(value)
        size_bytes = dtype.itemsize * prod(argument.dimensions)
        if not argument.token:
            room = self._mapped_room(argument, size_bytes) if dtype.kind == "f" else None
        elif size_bytes <= argument.room_bytes:
            room = self._buffers.room(argument.token, size_bytes)
        else:
            room = None
        if room is None or room.ctypes.data % dtype.alignment:
            return None
        return room.view(dtype).reshape(argument.dimensions)

    def _mapped_room(self, argument: RunArgument, size_bytes: int) -> Bytes | None:
        pool, location = argument.pool, argument.location
        if pool is None or location is None or pool.mode is not PoolMode.SEALED:
            return None
        if location.length_bytes < size_bytes:
            return None
        return self._mappings.map(pool)[location.offset_bytes :][:size_bytes]

    def _store(self, argument: RunArgument, result: Array) -> bool:
        """Put an output where it was to go; False if it is too large."""
        data = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
        if argument.token:
            if data.size > argument.room_bytes:
                return False
            self._buffers.room(argument.token, data.size)[...] = data
        elif argument.pool is not None and argument.pool.image is not None:
            if data.size != argument.pool.extent.content_bytes:
                return False
            self._mappings.store(argument.pool, data)
        elif argument.pool is not None and argument.location is not None:
            if data.size > argument.location.length_bytes:
                return False
            self._mappings.write(argument.pool, argument.location.offset_bytes, data)
        return True
