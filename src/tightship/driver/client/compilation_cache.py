"""Files of a client in which a driver saves a prepared model."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tightship.driver.client.assembling import assembled
from tightship.driver.client.building import ModelBuilder
from tightship.driver.client.model_source import PREPARED_SUFFIX, ModelLike, files_beside
from tightship.driver.protocol.codec import encode_model
from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.types.status import CACHE_TOKEN_BYTES, ExecutionPreference
from tightship.errors import InputError
from tightship.prepared_cache import (
    PreparedCache,
    UnusableCacheError,
    cache_folder,
    cache_size_bytes,
    identify,
)


@dataclass(frozen=True, slots=True)
class CompilationCache:
    """Open files, and a token for the model in them.

    Attributes:
        token: 32 bytes, different for each model and way of preparing it; `of` computes it.
        model_files, data_files: Descriptors open to read and write; as many as
            `Client.capabilities` says.
    """

    token: bytes
    model_files: tuple[int, ...]
    data_files: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        model: ModelLike,
        model_files: tuple[int, ...],
        *,
        preference: int = ExecutionPreference.FAST_SINGLE_ANSWER,
    ) -> "CompilationCache":
        """Compute the token of a model's current contents and its preparation.

        External data counts. Digests of files are kept beside this user's shared models and reused
        while a file is unchanged.

        Args:
            model: As for `Client.prepare`.
            model_files: Descriptors open to read and write.
            preference: As for `Client.prepare`.

        Raises:
            FormatError: The model names a file outside its folder.
            InputError: A builder has constants in files; only their owner knows the contents.
            OSError: A file cannot be read.
        """
        return cls(_token(model, preference), model_files)

    @property
    def files(self) -> tuple[int, ...]:
        """All files, as they travel beside a message."""
        return self.model_files + self.data_files


def cache_files(cache: CompilationCache) -> CacheFiles:
    """Return the indexes of the files in the message, and the token."""
    count = len(cache.model_files)
    return CacheFiles(tuple(range(count)), tuple(range(count, len(cache.files))), cache.token)


NO_CACHE = CompilationCache(bytes(CACHE_TOKEN_BYTES), ())


def _token(model: ModelLike, preference: int) -> bytes:
    digest = hashlib.sha256(b"%d" % preference)
    for part in _parts(model):
        digest.update(hashlib.sha256(part).digest())
    return digest.digest()


def _parts(model: ModelLike) -> Iterator[bytes]:
    if isinstance(model, ModelBuilder):
        found = assembled(model)
        if found.pools:
            raise InputError(
                "The model has constants in files; compute a token of 32 bytes from their contents."
            )
        yield from (encode_model(found.model(0 if found.gathered else None)), found.gathered)
    elif isinstance(model, bytes):
        yield model
    else:
        yield _digest(Path(model)).encode()


def _digest(path: Path) -> str:
    """Return the digest of a file and its external data, from the noted digests if possible."""
    folder = Path(os.devnull)  # nothing can be noted there
    with suppress(UnusableCacheError):
        folder = cache_folder()
        PreparedCache(folder, cache_size_bytes()).open()

    def data_files() -> list[Path]:
        return [*files_beside(path, path.read_bytes()).values()]

    is_alone = path.suffix == PREPARED_SUFFIX
    return identify(path, tuple if is_alone else data_files, folder).digest
