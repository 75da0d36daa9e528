"""Runs of models on pools and buffers."""

import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightship._core import StopFlag
from tightship.driver.memory.mappings import Array, Bytes, Mappings
from tightship.driver.models.device_buffers import DeviceBuffers
from tightship.driver.models.image_model import ImageModel, bound
from tightship.driver.models.loaded import Loaded, OpenNamed, fitted, shortage
from tightship.driver.models.open_operands import OpenOperands
from tightship.driver.models.registry import Models
from tightship.driver.models.subgraph_sequence import check_made
from tightship.driver.protocol.replies import OutputShape, Timing
from tightship.driver.service.effects import Run, RunArgument
from tightship.driver.service.events import RunFinished
from tightship.driver.types.dimensions import is_specified
from tightship.driver.types.elements import dtype_of, may_change
from tightship.driver.types.operand_type import ValueType
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.status import EXHAUSTED, ErrorStatus, failure
from tightship.errors import DeadlineError, DriverError, StoppedError, TightshipError
from tightship.model import Model
from tightship.model.bound_run import BoundRun

REPEATS_MAX = 256
"""Requests that are cached together with the memory they name."""

OFTEN = 3
"""Runs from which a request counts as frequent."""

Key = tuple[object, ...]

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Repeat:
    """Cached run on memory that stays in place.

    Attributes:
        rooms: Memory of the buffers that it uses, by token.
        is_alike: Whether each run takes equally long, as `MemoryPlan.is_constant_time` says.
        count: Number of runs.
    """

    asked: Run
    run: BoundRun
    shapes: tuple[OutputShape, ...]
    rooms: dict[int, Bytes]
    is_alike: bool
    count: int = 0

    def is_good(self, asked: Run, buffers: DeviceBuffers) -> bool:
        """Whether all buffers have the same memory, and still may be as large."""
        rooms = self.rooms
        return all(buffers[token] is room for token, room in rooms.items()) and all(
            not each.token or rooms[each.token].size <= each.room_bytes for each in asked.outputs
        )

    def uses(self, pool: Pool) -> bool:
        """Whether an argument is in this pool."""
        return any(each.pool == pool for each in _arguments(self.asked))


class Runs:
    """Runs of loaded models."""

    def __init__(self, models: Models, mappings: Mappings, buffers: DeviceBuffers) -> None:
        self._models = models
        self._mappings = mappings
        self._buffers = buffers
        self._repeats: dict[Key, _Repeat] = {}

    def forget_pool(self, pool: Pool) -> None:
        """Forget cached runs that use a pool."""
        self._forget(lambda repeat: repeat.uses(pool))

    def forget_buffer(self, token: int) -> None:
        """Forget cached runs that use a buffer."""
        self._forget(lambda repeat: token in repeat.rooms)

    def forget_model(self, model: int) -> None:
        """Forget cached runs of a model."""
        self._forget(lambda repeat: repeat.asked.model == model)

    def _forget(self, goes: Callable[[_Repeat], bool]) -> None:
        for key, repeat in list(self._repeats.items()):
            if goes(repeat):
                self._repeats.pop(key, None)

    def often(self, asked: Run) -> BoundRun | None:
        """Return the cached run of a frequent request that always takes equally long; else None."""
        repeat = self._repeats.get(_key(asked))
        if repeat is None or repeat.count < OFTEN or not repeat.is_alike:
            return None
        if not repeat.is_good(asked, self._buffers):
            return None
        return repeat.run

    def run(self, asked: Run, stop: StopFlag) -> RunFinished:
        """Run a model on the memory that a request names."""
        start_ns = time.monotonic_ns()
        try:
            status, shapes, device_ns = self._run(asked, stop)
        except DriverError as error:
            return _failed(asked, ErrorStatus(error.status), error)
        except (DeadlineError, StoppedError) as error:
            return _failed(asked, ErrorStatus.MISSED_DEADLINE_TRANSIENT, error)
        except EXHAUSTED as error:
            return _failed(asked, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, error)
        except TightshipError as error:
            return _failed(asked, ErrorStatus.GENERAL_FAILURE, error)
        except Exception as error:  # noqa: BLE001 - a client's values must not end the driver
            _LOG.error("Running a client's model failed with an unexpected error.", exc_info=error)
            return RunFinished(asked.execution, ErrorStatus.GENERAL_FAILURE)
        timing = Timing(device_ns, time.monotonic_ns() - start_ns)
        return RunFinished(asked.execution, status, shapes, timing)

    def _run(self, asked: Run, stop: StopFlag) -> tuple[ErrorStatus, tuple[OutputShape, ...], int]:
        key = _key(asked)
        repeat = self._repeats.get(key)
        if repeat is None or not repeat.is_good(asked, self._buffers):
            found = self._models[asked.model]
            if found.is_open:
                found, asked = fitted(found, asked)
                short = shortage(found, asked)
                if short:
                    return ErrorStatus.OUTPUT_INSUFFICIENT_SIZE, short, 0
            repeat = self._bound(asked, found)
            if repeat is None:
                return self._run_copying(asked, found, stop)
            self._remember(key, repeat)
        begin_ns = time.monotonic_ns()
        repeat.count += 1
        repeat.run.run(stop)
        return ErrorStatus.NONE, repeat.shapes, time.monotonic_ns() - begin_ns

    def _bound(self, asked: Run, found: Loaded) -> _Repeat | None:
        """Bind a run to memory in place; None if something must be copied."""
        model = found.model
        if not isinstance(model, (Model, ImageModel)):
            return None
        inputs, outputs = [
            [self._in_place(*each, to_write=to_write) for each in zip(row, types, strict=True)]
            for row, types, to_write in (
                (asked.inputs, found.inputs, False),
                (asked.outputs, found.outputs, True),
            )
        ]
        read = {name: a for name, a in zip(model.input_names, inputs, strict=True) if a is not None}
        written = {
            name: a for name, a in zip(model.output_names, outputs, strict=True) if a is not None
        }
        if len(read) < len(inputs) or len(written) < len(outputs):
            return None
        run = bound(model, read, written)
        if run is None:
            return None
        tokens = [each.token for each in _arguments(asked) if each.token]
        rooms = {token: self._buffers[token] for token in tokens}
        shapes = tuple([OutputShape(array.shape) for array in written.values()])
        is_alike = all(program.plan.is_constant_time for program in found.programs)
        return _Repeat(asked, run, shapes, rooms, is_alike)

    def _remember(self, key: Key, repeat: _Repeat) -> None:
        """Cache a run and forget those on memory that its buffers have replaced."""
        rooms = repeat.rooms
        self._forget(
            lambda each: any(
                rooms.get(token, room) is not room for token, room in each.rooms.items()
            )
        )
        while len(self._repeats) >= REPEATS_MAX:
            self._repeats.pop(next(iter(self._repeats)), None)
        self._repeats[key] = repeat

    def _run_copying(
        self, asked: Run, found: Loaded, stop: StopFlag
    ) -> tuple[ErrorStatus, tuple[OutputShape, ...], int]:
        model = found.model
        assert not isinstance(model, OpenOperands | OpenNamed)
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
            if (array := self._in_place(argument, value, to_write=True)) is not None
        }
        begin_ns = time.monotonic_ns()
        results = found.run(inputs, direct, stop, asked.loop_timeout_ns)
        device_ns = time.monotonic_ns() - begin_ns
        shapes = []
        for name, (argument, _) in places.items():
            check_made(results[name], argument.dimensions)
            fits = name in direct or self._store(argument, results[name])
            shapes.append(OutputShape(results[name].shape, fits))
        is_whole = all(shape.is_sufficient for shape in shapes)
        status = ErrorStatus.NONE if is_whole else ErrorStatus.OUTPUT_INSUFFICIENT_SIZE
        return status, tuple(shapes), device_ns

    def _in_place(self, argument: RunArgument, value: ValueType, *, to_write: bool) -> Array | None:
        """Return an argument that can be used in place; None if it must be copied.

        Integers in pools are copied: a client may write there during the run, after an index has
        been checked.
        """
        dtype, pool, location = dtype_of(value), argument.pool, argument.location
        if not is_specified(argument.dimensions, is_scalar=value.is_scalar):
            return None
        size_bytes = dtype.itemsize * math.prod(argument.dimensions)
        if argument.token:
            data = self._room(argument, size_bytes) if to_write else self._buffers[argument.token]
            is_fit = (
                data is not None and data.size == size_bytes and (to_write or dtype.kind != "b")
            )
        elif pool is not None and location is not None and pool.mode is PoolMode.SEALED:
            start = location.offset_bytes
            data = self._mappings.map(pool)[start : start + location.length_bytes]
            is_fit = pool.image is None and data.size >= size_bytes and may_change(dtype)
        else:
            return None
        if data is None or not is_fit or data.ctypes.data % dtype.alignment:
            return None
        return self._shaped(argument, data[:size_bytes].view(dtype))

    def _shaped(self, argument: RunArgument, elements: Array) -> Array:
        if argument.token:
            return self._buffers.seen(argument.token, elements, argument.dimensions)
        return elements.reshape(argument.dimensions)

    def _room(self, argument: RunArgument, size_bytes: int) -> Bytes | None:
        if size_bytes > argument.room_bytes:
            return None
        return self._buffers.room(argument.token, size_bytes)

    def _input(self, argument: RunArgument, value: ValueType) -> Array:
        """Return an input, copied unless it can be read in place."""
        array = self._in_place(argument, value, to_write=False)
        if array is not None:
            return array
        dtype, pool = dtype_of(value), argument.pool
        if argument.token:
            data = self._buffers[argument.token]
        elif pool is not None and argument.location is not None:
            data = self._mappings.value(pool, argument.location)
        else:
            raise failure("Every input of this model needs a value.")
        if dtype.kind == "b":
            data = data != 0
        elif pool is None or pool.mode is PoolMode.SEALED:
            data = data.copy()
        return self._shaped(argument, data.view(dtype))

    def _store(self, argument: RunArgument, result: Array) -> bool:
        """Store an output; return False if it is too large."""
        data = np.ascontiguousarray(result).reshape(-1).view(np.uint8)
        if argument.token:
            if data.size > argument.room_bytes:
                return False
            self._buffers.fill(argument.token, data, result.shape)
        elif argument.pool is not None and argument.pool.image is not None:
            if data.size != argument.pool.extent.content_bytes:
                return False
            self._mappings.store(argument.pool, data)
        elif argument.pool is not None and argument.location is not None:
            if data.size > argument.location.length_bytes:
                return False
            self._mappings.write(argument.pool, argument.location.offset_bytes, data)
        return True


def _failed(asked: Run, status: ErrorStatus, error: Exception) -> RunFinished:
    return RunFinished(asked.execution, status, message=str(error))


def _key(asked: Run) -> Key:
    """Return a key that runs of one model on the same memory share."""
    return asked.model, *[_place(each) for each in asked.inputs], *map(_place, asked.outputs)


def _place(argument: RunArgument) -> object:
    pool, location = argument.pool, argument.location
    if pool is None or location is None:
        return argument.token, argument.dimensions
    start, size_bytes = location.offset_bytes, location.length_bytes
    return pool.identifier, start, size_bytes, argument.dimensions


def _arguments(asked: Run) -> tuple[RunArgument, ...]:
    return (*asked.inputs, *asked.outputs)
