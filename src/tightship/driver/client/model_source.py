"""Models sent to a driver: small ones in a message, others in pools."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tightship.driver.client.assembling import assembled
from tightship.driver.client.building import ModelBuilder
from tightship.driver.client.session import Session
from tightship.driver.memory.descriptor import new_segment
from tightship.driver.printable import printable
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.codec import MESSAGE_BYTES_MAX, encode_model
from tightship.driver.protocol.forms import NAME_BYTES_MAX
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.types.model import (
    ExternalFile,
    FileFormat,
    Model,
    ModelFile,
    ModelSource,
    NamedFile,
)
from tightship.driver.types.pools import READ, PoolKind, PoolMode
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, FormatError

ModelLike = bytes | str | os.PathLike[str] | ModelBuilder
"""A model: the bytes of a file, the path of one, or operations for the driver."""
PREPARED_SUFFIX = ".tship"
HEADERS_BYTES_MAX = 1024
"""Largest part of a message besides its model."""


class Shares:
    """Pools of bytes and files; methods return the identifier of a new pool."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pools: list[int] = []

    @property
    def can_name(self) -> bool:
        """Whether the driver accepts names of files."""
        return "named_files" in self._session.features()

    def add_bytes(self, data: bytes) -> int:
        """Share bytes in sealed memory."""
        file = new_segment(max(1, len(data)), data)
        try:
            return self._register(m.RegisterPool(PoolKind.ASHMEM, max(1, len(data)), READ, 0), file)
        finally:
            os.close(file)

    def add_file(self, path: Path, mode: PoolMode) -> int:
        """Share a file that is not empty.

        Raises:
            OSError: It cannot be read.
        """
        with path.open("rb") as file:
            size_bytes = os.fstat(file.fileno()).st_size
            call = m.RegisterPool(PoolKind.MMAP_FD, size_bytes, READ, 0, mode=mode)
            return self._register(call, file.fileno())

    def add_trusted(self, path: Path) -> int | None:
        """Share a file that the driver maps in place; None if it does not trust it."""
        try:
            return self.add_file(path, PoolMode.SEALED)
        except DriverError as error:
            if error.status != ErrorStatus.INVALID_ARGUMENT:
                raise
            return None

    def _register(self, call: m.RegisterPool, file: int) -> int:
        self._pools.append(self._session.expect(PoolRegistered, call, (file,)).pool)
        return self._pools[-1]

    def forget(self) -> None:
        """Release all pools; a model keeps those it needs."""
        for pool in self._pools:
            self._session.forget(m.UnregisterPool(pool))


@contextmanager
def sharing(session: Session) -> Iterator[Shares]:
    """Share bytes and files with the driver within a block."""
    shares = Shares(session)
    try:
        yield shares
    finally:
        shares.forget()


def model_of(builder: ModelBuilder, shares: Shares) -> Model:
    """Assemble the model of a builder and share its larger constants."""
    found = assembled(builder)
    return found.model(shares.add_bytes(found.gathered) if found.gathered else None)


def source_of(model: ModelLike, shares: Shares) -> ModelSource:
    """Share a model and return it in the form of `Prepare`.

    Raises:
        OSError: A file cannot be read.
        FormatError: The model is empty, or names a file outside its folder.
    """
    if isinstance(model, ModelBuilder):
        return _of_operands(model_of(model, shares), shares)
    if isinstance(model, bytes):
        _check_filled(model, "<bytes>")
        return ModelFile(FileFormat.ONNX, shares.add_bytes(model), 0, len(model))
    path = Path(model)
    if path.suffix == PREPARED_SUFFIX:
        return _prepared(path, shares)
    data = path.read_bytes()
    _check_filled(data, path)
    externals = tuple(
        ExternalFile(name, shares.add_trusted(file) or shares.add_file(file, PoolMode.COPY))
        for name, file in files_beside(path, data).items()
    )
    place = FileFormat.ONNX, shares.add_bytes(data), 0, len(data), externals
    return NamedFile(*place, shown(path)) if shares.can_name else ModelFile(*place)


def _check_filled(data: bytes, name: object) -> None:
    if not data:
        raise FormatError(f"`{name}` is not a model: it is empty.")


def shown(path: Path) -> str:
    """Return a path for messages of the driver: on one line, cut at the front if too long."""
    text = printable(str(path))
    end = text.encode()[-NAME_BYTES_MAX:].decode(errors="ignore")
    return end if end == text else f"...{end[3:]}"


def _prepared(path: Path, shares: Shares) -> ModelSource:
    """Share a prepared model: the file itself, or a sealed copy."""
    pool = shares.add_trusted(path)
    if pool is None:
        data = path.read_bytes()
        _check_filled(data, path)
        return ModelFile(FileFormat.PREPARED, shares.add_bytes(data), 0, len(data))
    return ModelFile(FileFormat.PREPARED, pool, 0, path.stat().st_size)


def files_beside(path: Path, data: bytes) -> dict[str, Path]:
    """Return an ONNX model's files of external data, by their names in the model."""
    if b"location" not in data:  # a cheap test: the key of external data is absent
        return {}
    from tightship.frontend.onnx import open_file

    return open_file(path).named_data_files()


def _of_operands(model: Model, shares: Shares) -> ModelSource:
    data = encode_model(model)
    if len(data) <= MESSAGE_BYTES_MAX - HEADERS_BYTES_MAX:
        return model
    named = tuple(ExternalFile(str(number), number) for number in model.pools)
    return ModelFile(FileFormat.OPERANDS, shares.add_bytes(data), 0, len(data), named)
