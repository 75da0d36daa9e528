"""Compilation caches: prepared models in files of clients."""

import logging
import mmap
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from tightship.driver.memory.descriptor import seal_content, write_all
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import PART_BYTES
from tightship.driver.models.cached_sources import Sources, are_current
from tightship.driver.models.loaded import Loaded
from tightship.driver.models.loader import Loader
from tightship.driver.protocol.codec import decode_reply, encode_reply
from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.protocol.replies import ModelPrepared
from tightship.driver.service.cache import HEAD_BYTES, cache_head, opened_head
from tightship.driver.types.status import failure
from tightship.errors import DriverError

_LOG = logging.getLogger(__name__)


class ModelCache:
    """Reads and writes files of compilation caches.

    Contents are copied out of a client's file before they are used, and must have been written by a
    driver with the same secret for the same token.
    """

    def __init__(self, secret: bytes, slow: FileProber) -> None:
        """Use `slow` for files that may not answer."""
        self._secret = secret
        self._slow = slow

    def save(
        self, files: CacheFiles, found: Loaded, prepared: int | None, sources: Sources
    ) -> None:
        """Write a model to a client's file, or leave the file empty.

        Failures are only logged: a client prepares anew if it finds nothing.

        Args:
            files: Files of the client.
            found: Loaded model.
            prepared: Its prepared file; None if it has none.
            sources: Record made before the model was read.
        """
        (file,) = files.model_files
        try:
            self._slow.answer(file, partial(os.ftruncate, file, 0))
            noted = sources.noted()
            if noted is None:
                _LOG.info("A file of a client's model has changed; the model is not cached.")
            elif prepared is not None:
                self._write(file, files.token, found, prepared, noted)
        except (OSError, DriverError) as error:
            _LOG.info("A model could not be written to a client's cache: %s", error)

    def _write(self, file: int, token: bytes, found: Loaded, prepared: int, sources: bytes) -> None:
        interface = encode_reply(ModelPrepared(0, found.inputs, found.outputs), 0)
        with _viewed(prepared) as payload:
            head = cache_head(self._secret, token, interface, sources, payload)
            front = head + interface + sources
            self._write_at(file, payload, len(front))
        self._write_at(file, memoryview(front), 0)  # last, so that a partial file has no head

    def read(self, files: CacheFiles, loader: Loader) -> Loaded:
        """Load the model in a client's file.

        Raises:
            DriverError: GENERAL_FAILURE: it was changed, or is for another token, or a source file
                has changed.
            FormatError: It was prepared by another version, or for another processor.
            OSError: The file cannot be read.
        """
        (file,) = files.model_files
        size_bytes = self._slow.answer(file, partial(os.fstat, file)).st_size
        first = self._read_at(file, HEAD_BYTES, 0)
        head = opened_head(self._secret, files.token, first, size_bytes)
        front = self._read_at(file, head.interface_bytes + head.sources_bytes, HEAD_BYTES)
        interface, sources = front[: head.interface_bytes], front[head.interface_bytes :]
        copy = self._copied(file, HEAD_BYTES + len(front), head.payload_bytes)
        try:
            with _viewed(copy) as payload:
                head.check_body(interface, sources, payload)
            if not are_current(sources):
                raise failure("A source file of the cached model has changed or is gone.")
            reply = decode_reply(interface).message
            assert isinstance(reply, ModelPrepared), reply
            return Loaded(loader.prepared(copy), reply.inputs, reply.outputs)
        finally:
            os.close(copy)

    def _write_at(self, file: int, data: memoryview, start: int) -> None:
        done = 0
        while done < len(data):
            part = bytes(data[done : done + PART_BYTES])
            done += self._slow.answer(file, partial(os.pwrite, file, part, start + done))

    def _read_at(self, file: int, size_bytes: int, start: int) -> bytes:
        return self._slow.answer(file, partial(os.pread, file, size_bytes, start))

    def _copied(self, file: int, start: int, size_bytes: int) -> int:
        """Return a sealed memfd with a copy of a part of a file.

        Raises:
            DriverError: GENERAL_FAILURE: the file is shorter, or does not answer.
            OSError: The file cannot be read, or memory is short.
        """
        copy = os.memfd_create("tightship cached", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        done = 0
        with ExitStack() as undo:
            undo.callback(os.close, copy)
            while done < size_bytes:
                part = self._read_at(file, min(PART_BYTES, size_bytes - done), start + done)
                if not part:
                    raise failure("The model cache became shorter while it was read.")
                write_all(copy, part)
                done += len(part)
            seal_content(copy)
            undo.pop_all()
        return copy


@contextmanager
def _viewed(file: int) -> Iterator[memoryview]:
    with mmap.mmap(file, 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
        yield view
