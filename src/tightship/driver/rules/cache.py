"""The compilation cache: files of the client that hold a prepared model.

A model file is authenticated by a secret of the driver, so that what is read from it is what was
written, for the same token. A data file is not: a client may change it and gets what it then holds.

    model file   magic, 8 bytes | token, 32 | bytes of the payload, u64 | tag, 32 | the payload
"""

import hashlib
import hmac
import struct
from collections.abc import Sequence

from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.rules.attachment import Attachment
from tightship.driver.rules.status import CACHE_TOKEN_BYTES, failure, invalid
from tightship.driver.settings import Settings

_MAGIC = b"tscache1"
_HEAD = struct.Struct(f"<8s{CACHE_TOKEN_BYTES}sQ")
_TAG_BYTES = 32


def sealed_cache(secret: bytes, token: bytes, payload: bytes) -> bytes:
    """The content of a model file.

    Args:
        secret: Of the driver; known to nobody else.
        token: Of the client, 32 bytes.
        payload: What is to be read again.
    """
    head = _HEAD.pack(_MAGIC, token, len(payload))
    return head + _tag(secret, head, payload) + payload


def opened_cache(secret: bytes, token: bytes, content: bytes) -> bytes:
    """The payload of a model file's content, which nobody may change meanwhile: a copy of it.

    Raises:
        DriverError: GENERAL_FAILURE: it was written for another token or driver, or was changed.
    """
    if len(content) < _HEAD.size + _TAG_BYTES:
        raise failure(f"The model cache has {len(content)} bytes and no header.")
    head, rest = content[: _HEAD.size], content[_HEAD.size :]
    tag, payload = rest[:_TAG_BYTES], rest[_TAG_BYTES:]
    expected = _HEAD.pack(_MAGIC, token, len(payload))
    if head != expected or not hmac.compare_digest(tag, _tag(secret, head, payload)):
        raise failure("The model cache is of another token or driver, or was changed.")
    return payload


def _tag(secret: bytes, head: bytes, payload: bytes) -> bytes:
    mac = hmac.new(secret, head, hashlib.sha256)
    mac.update(payload)
    return mac.digest()


def cache_to_write(
    settings: Settings, cache: CacheFiles, files: Sequence[Attachment]
) -> CacheFiles | None:
    """The files to save a model to; None where there are none, or not those that are needed."""
    return cache if _is_usable(settings, cache, files) else None


def cache_to_read(settings: Settings, cache: CacheFiles, files: Sequence[Attachment]) -> CacheFiles:
    """The files to read a model from.

    Raises:
        DriverError: GENERAL_FAILURE where there is no cache; INVALID_ARGUMENT.
    """
    if not settings.model_cache_files + settings.data_cache_files:
        raise failure("This driver has no compilation cache.")
    if not _is_usable(settings, cache, files):
        raise invalid(
            f"A cache is {settings.model_cache_files} model and {settings.data_cache_files} data "
            "files, each open to read and write."
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
