"""Compilation cache: files of the client that hold a prepared model.

A model file is authenticated with a secret of the driver, so that its contents are what was written
for the same token. A data file is not: a client that changes it gets what it then holds.

    model file   magic, 8 bytes | token, 32 | size of the interface, u32, of the sources, u32, and
                 of the payload, u64 | digest of all three, 32 | tag of all before, 32 |
                 the interface | the sources | the payload

The tag authenticates the sizes before anything of that size is read.
"""

import hashlib
import hmac
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.types.attachment import Attachment
from tightship.driver.types.settings import Settings
from tightship.driver.types.status import CACHE_TOKEN_BYTES, failure, invalid

Data = bytes | memoryview

_MAGIC = b"tscache3"
_FIELDS = struct.Struct(f"<8s{CACHE_TOKEN_BYTES}sIIQ32s")
HEAD_BYTES = _FIELDS.size + 32


@dataclass(frozen=True, slots=True)
class CacheHead:
    """Sizes and digest from the head of an authentic model file."""

    interface_bytes: int
    sources_bytes: int
    payload_bytes: int
    digest: bytes

    def check_body(self, interface: Data, sources: Data, payload: Data) -> None:
        """Check the parts against the digest; no process may be able to change them meanwhile.

        Raises:
            DriverError: GENERAL_FAILURE: they were changed.
        """
        if not hmac.compare_digest(self.digest, _digest(interface, sources, payload)):
            raise failure("The model cache was changed.")


def cache_head(secret: bytes, token: bytes, interface: Data, sources: Data, payload: Data) -> bytes:
    """Return the head of a model file.

    Args:
        secret: Key that only the driver knows.
        token: Token of the client, 32 bytes.
        interface: Encoded types of the model's inputs and outputs.
        sources: Encoded identities of the files it was read from, which must not change.
        payload: Encoded prepared model.
    """
    digest = _digest(interface, sources, payload)
    fields = _FIELDS.pack(_MAGIC, token, len(interface), len(sources), len(payload), digest)
    return fields + _tag(secret, fields)


def opened_head(secret: bytes, token: bytes, head: bytes, size_bytes: int) -> CacheHead:
    """Authenticate and decode the first `HEAD_BYTES` of a model file.

    Raises:
        DriverError: GENERAL_FAILURE: it was written for another token or driver, or was changed.
    """
    if len(head) != HEAD_BYTES:
        raise failure(
            f"The model cache has {size_bytes} bytes; its header alone takes {HEAD_BYTES}."
        )
    fields, tag = head[: _FIELDS.size], head[_FIELDS.size :]
    _, owner, interface_bytes, sources_bytes, payload_bytes, digest = _FIELDS.unpack(fields)
    if not hmac.compare_digest(tag, _tag(secret, fields)) or owner != token:
        raise failure("The model cache is of another token or driver, or was changed.")
    if size_bytes != HEAD_BYTES + interface_bytes + sources_bytes + payload_bytes:
        raise failure(f"The model cache has {size_bytes} bytes, not as many as were written.")
    return CacheHead(interface_bytes, sources_bytes, payload_bytes, digest)


def _digest(*parts: Data) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.digest()


def _tag(secret: bytes, fields: bytes) -> bytes:
    return hmac.digest(secret, fields, "sha256")


def cache_to_write(
    settings: Settings, cache: CacheFiles, files: Sequence[Attachment]
) -> CacheFiles | None:
    """Return the files to save a model to, or None if they are missing or unsuitable."""
    return cache if _is_usable(settings, cache, files) else None


def cache_to_read(settings: Settings, cache: CacheFiles, files: Sequence[Attachment]) -> CacheFiles:
    """Return the files to read a model from.

    Raises:
        DriverError: GENERAL_FAILURE: the driver has no cache; INVALID_ARGUMENT: other files are
            needed.
    """
    if not settings.model_cache_files + settings.data_cache_files:
        raise failure("This driver has no compilation cache.")
    if not _is_usable(settings, cache, files):
        raise invalid(
            f"A cache needs {settings.model_cache_files} model and {settings.data_cache_files} "
            "data files, each open to read and write."
        )
    return cache


def _is_usable(settings: Settings, cache: CacheFiles, files: Sequence[Attachment]) -> bool:
    indexes = (*cache.model_files, *cache.data_files)
    counts = len(cache.model_files), len(cache.data_files)
    return (
        bool(indexes)
        and counts == (settings.model_cache_files, settings.data_cache_files)
        and len(set(indexes)) == len(indexes)
        and all(0 <= index < len(files) for index in indexes)
        and all(
            files[index].is_regular and files[index].is_readable and files[index].is_writable
            for index in indexes
        )
    )
