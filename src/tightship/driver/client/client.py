"""A client of a driver: models, memory and executions in another process."""

import os
from collections.abc import Sequence
from dataclasses import replace

from tightship.driver.client.blob import Blob
from tightship.driver.client.building import ModelBuilder
from tightship.driver.client.compilation_cache import NO_CACHE, CompilationCache
from tightship.driver.client.device_buffer import DeviceBuffer
from tightship.driver.client.file_pool import FilePool
from tightship.driver.client.image_pool import ImagePool
from tightship.driver.client.model_source import ModelLike, model_of, sharing, source_of
from tightship.driver.client.pooled_buffer import PooledBuffer, common_kind, specified
from tightship.driver.client.remote import RemoteModel
from tightship.driver.client.segment import Segment
from tightship.driver.client.session import Session
from tightship.driver.client.tensor_file import TensorFile
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


@public_methods
class Client:
    """A connection to a driver; with it goes everything that was made by it."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        """Connect.

        Args:
            path: Of the driver's socket; None is where it listens by default.

        Raises:
            DriverError: DEVICE_UNAVAILABLE: no driver listens there.
        """
        self._session = Session(path)

    def capabilities(self) -> DriverCapabilities:
        """What the driver offers.

        Raises:
            DriverError: DEVICE_UNAVAILABLE, here as in every method: the driver is gone.
        """
        return self._session.expect(DriverCapabilities, m.Capabilities())

    def supported_operations(self, model: ModelBuilder) -> tuple[bool, ...]:
        """Which operations of a model's main subgraph the driver can run, in order.

        Raises:
            DriverError: INVALID_ARGUMENT: it breaks a rule.
            FormatError: It is too large for a message.
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
        """Have a model made ready to run.

        Args:
            model: Bytes of an ONNX file; path of one, or of a prepared model (`.tship`); or one
                built operand by operand.
            cache: Files to keep it in; if that fails, they hold nothing and the call succeeds.
            preference: For a fast single answer its kernels take all threads of the driver, else
                one each.
            priority: Among the models of this client.
            timeout_s: Seconds after which the call fails.

        Raises:
            DriverError: GENERAL_FAILURE: it is not valid, or cannot be run;
                MISSED_DEADLINE_TRANSIENT: the time is over.
            FormatError: It is empty, or names a file outside its folder.
            OSError: A file of it cannot be read.
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
        """The model that `prepare` has kept in some files.

        Raises:
            DriverError: GENERAL_FAILURE, INVALID_ARGUMENT: the files do not hold it as it was
                written, for this token, driver and processor; prepare it anew.
        """
        call = m.PrepareFromCache(cache.indexes, priority, after(timeout_s))
        return RemoteModel(self._session, self._session.expect(ModelPrepared, call, cache.files))

    def prepare_named(
        self, name: str, *, priority: int = Priority.MEDIUM, timeout_s: float | None = None
    ) -> RemoteModel:
        """A model that the driver was started with; as `prepare`.

        Raises:
            DriverError: INVALID_ARGUMENT: there is none of that name.
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
        call = replace(call, cache=kept.indexes)
        prepared = self._session.expect(ModelPrepared, call, kept.files)
        return RemoteModel(self._session, prepared, depends_on_data=depends_on_data)

    def inspect(self) -> Snapshot:
        """Who holds which bytes of the driver.

        Raises:
            DriverError: INVALID_ARGUMENT: only the driver's own user, and root, may ask.
        """
        file = os.memfd_create("tightship-snapshot", os.MFD_CLOEXEC)
        try:
            size_bytes = self._session.expect(Inspected, m.Inspect(0), (file,)).size_bytes
            return decode_snapshot(os.pread(file, size_bytes, 0))
        finally:
            os.close(file)

    def segment(self, size_bytes: int) -> Segment:
        """Memory in which arrays can be placed that the driver uses where they are.

        Raises:
            DriverError: RESOURCE_EXHAUSTED_TRANSIENT, RESOURCE_EXHAUSTED_PERSISTENT.
            InputError: `size_bytes` is below 1.
        """
        return Segment(self._session, size_bytes)

    def file_pool(
        self, file: int, mode: PoolMode = PoolMode.COPY, *, is_writable: bool = False
    ) -> FilePool:
        """A file of this process as memory; otherwise as `FilePool`.

        Args:
            file: Descriptor of a regular file or memfd.
            mode: How the driver comes to its bytes.
            is_writable: Outputs may go there.
        """
        return FilePool(self._session, file, mode, is_writable=is_writable)

    def blob(self, size_bytes: int, file: int | None = None) -> Blob:
        """Memory as a hardware buffer of bytes, which a device may use too; as `Blob`.

        Args:
            size_bytes: Of it, or of the front of `file`.
            file: Descriptor of a dma-buf, or of a memfd sealed against shrinking; None has the
                system make a dma-buf, or a memfd where it makes none.

        Raises:
            DriverError: INVALID_ARGUMENT: the file is neither, or shorter.
            InputError: `size_bytes` is below 1.
            OSError: The system has no room for it.
        """
        return Blob(self._session, size_bytes, file)

    def tensor_file(self, path: str | os.PathLike[str]) -> TensorFile:
        """A `.safetensors` file, for constants of models that are built; as `TensorFile`."""
        return TensorFile(self._session, path)

    def image_pool(
        self, file: int, image: Image, mode: PoolMode = PoolMode.COPY, *, is_writable: bool = False
    ) -> ImagePool:
        """A file of this process as an image of rows, for inputs and outputs; as `file_pool`."""
        return ImagePool(self._session, file, image, mode, is_writable=is_writable)

    def allocate(
        self,
        *,
        inputs: Sequence[tuple[RemoteModel, int]] = (),
        outputs: Sequence[tuple[RemoteModel, int]] = (),
        dimensions: Dimensions = (),
    ) -> DeviceBuffer | PooledBuffer:
        """A buffer in the driver; in a segment where the driver has no `memory_domains`.

        Args:
            inputs: What it will be read as, by index.
            outputs: What it will be written as, by index.
            dimensions: What is known beyond what the models say.

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
        """Hang up; the driver gives back all that was made here. Harmless when repeated."""
        self._session.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
