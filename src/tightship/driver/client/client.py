"""Client of a driver: models, memory and executions in another process."""

import os
from collections.abc import Sequence
from dataclasses import replace

from tightship.deprecated import takes_old_parameters
from tightship.driver.client.blob import Blob
from tightship.driver.client.building import ModelBuilder
from tightship.driver.client.compilation_cache import NO_CACHE, CompilationCache, cache_files
from tightship.driver.client.device_buffer import DeviceBuffer, PooledBuffer, common_kind, specified
from tightship.driver.client.file_pool import FilePool, ImagePool, TensorFile
from tightship.driver.client.model_source import ModelLike, model_of, sharing, source_of
from tightship.driver.client.remote import RemoteModel
from tightship.driver.client.segment import Segment
from tightship.driver.client.session import Session
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import (
    Allocated,
    DriverCapabilities,
    Inspected,
    ModelPrepared,
    Supported,
)
from tightship.driver.protocol.snapshot_form import decode_snapshot
from tightship.driver.types.deadline import after
from tightship.driver.types.dimensions import Dimensions
from tightship.driver.types.model import ModelName
from tightship.driver.types.pools import Image, PoolMode
from tightship.driver.types.snapshot import Snapshot
from tightship.driver.types.status import ExecutionPreference, Priority
from tightship.errors import DriverError
from tightship.public_calls import public_methods
from tightship.quantity import parse_bytes


@public_methods
class Client:
    """Connection to a driver, which owns everything that is created through it."""

    @takes_old_parameters("Client")
    def __init__(self, socket: str | os.PathLike[str] | None = None) -> None:
        """Connect.

        Args:
            socket: Path of the driver's socket; None for the default.

        Raises:
            DriverError: DEVICE_UNAVAILABLE: no driver listens there.
        """
        self._session = Session(socket)

    def capabilities(self) -> DriverCapabilities:
        """Return the features of the driver.

        Raises:
            DriverError: DEVICE_UNAVAILABLE, here and in every method: the driver is gone.
        """
        return self._session.expect(DriverCapabilities, m.Capabilities())

    def supported_operations(self, model: ModelBuilder) -> tuple[bool, ...]:
        """Return whether the driver can run each operation of a model's main subgraph.

        Raises:
            DriverError: INVALID_ARGUMENT: the model breaks a rule.
            FormatError: The model is too large for a message.
        """
        with sharing(self._session) as shares:
            call = m.SupportedOperations(model_of(model, shares))
            return self._session.expect(Supported, call).operations

    def prepare(
        self,
        model: ModelLike,
        *,
        cache: CompilationCache | None = None,
        preference: int = ExecutionPreference.FAST_SINGLE_ANSWER,
        priority: int = Priority.MEDIUM,
        timeout_s: float | None = None,
    ) -> RemoteModel:
        """Prepare a model to run.

        Args:
            model: Bytes of an ONNX file; path of one, or of a prepared model (`.tship`); or a
                builder.
            cache: Files to save it to; if that fails, they are left empty and the call succeeds.
            preference: A fast single answer uses all threads of the driver for each kernel, others
                one.
            priority: Rank among the models of this client.
            timeout_s: Seconds after which the call fails.

        Raises:
            DriverError: GENERAL_FAILURE: it is not valid, or cannot be run;
                MISSED_DEADLINE_TRANSIENT: the time is over.
            FormatError: It is empty, or names a file outside its folder.
            OSError: One of its files cannot be read.
        """
        with sharing(self._session) as shares:
            source = source_of(model, shares)
            call = m.Prepare(source, preference, priority, after(timeout_s))
            depends_on_data = isinstance(model, ModelBuilder) and bool(model.subgraphs)
            return self._prepare(call, cache, depends_on_data=depends_on_data)

    def prepare_from_cache(
        self,
        cache: CompilationCache,
        *,
        priority: int = Priority.MEDIUM,
        timeout_s: float | None = None,
    ) -> RemoteModel:
        """Prepare a model that `prepare` has saved to files.

        Args:
            cache: The files.
            priority: As for `prepare`.
            timeout_s: As for `prepare`.

        Raises:
            DriverError: GENERAL_FAILURE, INVALID_ARGUMENT: the files do not hold it as written for
                this token, driver and processor; prepare it anew.
        """
        call = m.PrepareFromCache(cache_files(cache), priority, after(timeout_s))
        return RemoteModel(self._session, self._session.expect(ModelPrepared, call, cache.files))

    def prepare_named(
        self, name: str, *, priority: int = Priority.MEDIUM, timeout_s: float | None = None
    ) -> RemoteModel:
        """Prepare a model that the driver was started with; arguments as for `prepare`.

        Raises:
            DriverError: INVALID_ARGUMENT: the driver has no model of this name.
        """
        call = m.Prepare(ModelName(name), priority=priority, deadline_ns=after(timeout_s))
        return self._prepare(call)

    def _prepare(
        self,
        call: m.Prepare,
        cache: CompilationCache | None = None,
        *,
        depends_on_data: bool = False,
    ) -> RemoteModel:
        kept = NO_CACHE if cache is None else cache
        call = replace(call, cache=cache_files(kept))
        prepared = self._session.expect(ModelPrepared, call, kept.files)
        return RemoteModel(self._session, prepared, depends_on_data=depends_on_data)

    def inspect(self) -> Snapshot:
        """Return the bytes that each client holds in the driver.

        Raises:
            DriverError: INVALID_ARGUMENT: this user is neither the driver's own nor root.
        """
        file = os.memfd_create("tightship-snapshot", os.MFD_CLOEXEC)
        try:
            size_bytes = self._session.expect(Inspected, m.Inspect(0), (file,)).size_bytes
            return decode_snapshot(os.pread(file, size_bytes, 0))
        finally:
            os.close(file)

    def segment(self, size_bytes: int | str) -> Segment:
        """Allocate memory for arrays that the driver uses in place.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_TRANSIENT, RESOURCE_EXHAUSTED_PERSISTENT.
            InputError: `size_bytes` is below 1.
        """
        return Segment(self._session, parse_bytes(size_bytes, "size_bytes"))

    def file_pool(
        self, file: int, mode: PoolMode = PoolMode.COPY, *, is_writable: bool = False
    ) -> FilePool:
        """Register a file of this process as memory; errors as for `FilePool`.

        Args:
            file: Descriptor of a regular file or memfd.
            mode: Way in which the driver accesses its bytes.
            is_writable: Whether outputs may be written there.
        """
        return FilePool(self._session, file, mode, is_writable=is_writable)

    def blob(self, size_bytes: int | str, file: int | None = None) -> Blob:
        """Create or register a hardware buffer of bytes, which a device may use too.

        Args:
            size_bytes: Size of the buffer, from the start of `file`.
            file: Descriptor of a dma-buf, or of a memfd sealed against shrinking; None to allocate
                a dma-buf, or a memfd if the system has none.

        Raises:
            DriverError: INVALID_ARGUMENT: the file is neither, or is too short.
            InputError: `size_bytes` is below 1.
            OSError: The system lacks memory.
        """
        return Blob(self._session, parse_bytes(size_bytes, "size_bytes"), file)

    def tensor_file(self, path: str | os.PathLike[str]) -> TensorFile:
        """Register a `.safetensors` file for constants of builders; errors as for `TensorFile`."""
        return TensorFile(self._session, path)

    def image_pool(
        self, file: int, image: Image, mode: PoolMode = PoolMode.COPY, *, is_writable: bool = False
    ) -> ImagePool:
        """Register a file of this process as an image; arguments as for `file_pool`."""
        return ImagePool(self._session, file, image, mode, is_writable=is_writable)

    def allocate(
        self,
        *,
        inputs: Sequence[tuple[RemoteModel, int]] = (),
        outputs: Sequence[tuple[RemoteModel, int]] = (),
        dimensions: Dimensions = (),
    ) -> DeviceBuffer | PooledBuffer:
        """Allocate a buffer in the driver; in a segment if the driver has no `memory_domains`.

        Args:
            inputs: Models that will read it, and the index of their input.
            outputs: Models that will write it, and the index of their output.
            dimensions: Dimensions that the models leave unknown.

        Raises:
            DriverError: INVALID_ARGUMENT: uses or dimensions contradict each other;
                RESOURCE_EXHAUSTED_TRANSIENT, RESOURCE_EXHAUSTED_PERSISTENT.
        """
        models = list(dict.fromkeys(model.identifier for model, _ in (*inputs, *outputs)))
        roles = [
            tuple(m.Role(models.index(model.identifier), index) for model, index in row)
            for row in (inputs, outputs)
        ]
        call = m.Allocate(dimensions, tuple(models), roles[0], roles[1])
        token = 0
        try:
            token = self._session.expect(Allocated, call).token
        except DriverError:
            if "memory_domains" in self.capabilities().features:
                raise
        kinds = [model.interface.inputs[index] for model, index in inputs]
        kinds += [model.interface.outputs[index] for model, index in outputs]
        kind = common_kind(kinds, dimensions)
        if token:
            return DeviceBuffer(self._session, token, kind)
        return PooledBuffer(self._session, specified(kind))

    def close(self) -> None:
        """Disconnect; the driver releases all that was created. Harmless when repeated."""
        self._session.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
