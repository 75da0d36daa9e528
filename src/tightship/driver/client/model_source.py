"""Models handed to a driver: in a message where they are small, else in pools."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tightship.driver.client.assembling import assembled
from tightship.driver.client.building import ModelBuilder
from tightship.driver.client.session import Session
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.codec import MESSAGE_BYTES_MAX, encode_model
from tightship.driver.protocol.replies import PoolRegistered
from tightship.driver.rim.descriptor import new_segment
from tightship.driver.rules.model import ExternalFile, FileFormat, Model, ModelFile, ModelSource
from tightship.driver.rules.pools import READ, PoolKind

ModelLike = bytes | str | os.PathLike[str] | ModelBuilder
Share = Callable[[bytes], int]
"""Makes bytes a pool that nobody can change, and gives its number."""

PREPARED_SUFFIX = ".tship"
HEADERS_BYTES_MAX = 1024
"""What a message has besides its model."""


@contextmanager
def sharing(session: Session) -> Iterator[Share]:
    """What shares bytes with the driver; their pools are forgotten with the block."""
    pools: list[int] = []

    def share(data: bytes) -> int:
        file = new_segment(max(1, len(data)), data)
        try:
            call = m.RegisterPool(PoolKind.ASHMEM, max(1, len(data)), READ, 0)
            pools.append(session.expect(PoolRegistered, call, (file,)).pool)
        finally:
            os.close(file)
        return pools[-1]

    try:
        yield share
    finally:
        for pool in pools:
            session.forget(m.UnregisterPool(pool))


def model_of(builder: ModelBuilder, share: Share) -> Model:
    """The model that was built, its larger constants shared."""
    found = assembled(builder)
    return found.model(share(found.gathered) if found.gathered else None)


def source_of(model: ModelLike, share: Share) -> ModelSource:
    """A model as `Prepare` takes it.

    Raises:
        OSError: The file cannot be read.
    """
    if isinstance(model, ModelBuilder):
        return _of_operands(model_of(model, share), share)
    data = model if isinstance(model, bytes) else Path(model).read_bytes()
    is_prepared = not isinstance(model, bytes) and Path(model).suffix == PREPARED_SUFFIX
    kind = FileFormat.PREPARED if is_prepared else FileFormat.ONNX
    return ModelFile(kind, share(data), 0, len(data))


def _of_operands(model: Model, share: Share) -> ModelSource:
    data = encode_model(model)
    if len(data) <= MESSAGE_BYTES_MAX - HEADERS_BYTES_MAX:
        return model
    named = tuple(ExternalFile(str(number), number) for number in model.pools)
    return ModelFile(FileFormat.OPERANDS, share(data), 0, len(data), named)
