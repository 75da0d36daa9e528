"""Files of a client in which a driver keeps a prepared model."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tightship.driver.client.assembling import assembled
from tightship.driver.client.building import ModelBuilder
from tightship.driver.client.model_source import PREPARED_SUFFIX, ModelLike, files_beside
from tightship.driver.protocol.codec import encode_model
from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.rim.cached_sources import source_of
from tightship.driver.rules.status import CACHE_TOKEN_BYTES, ExecutionPreference
from tightship.errors import InputError


@dataclass(frozen=True, slots=True)
class CompilationCache:
    """Open files, and the name of the model that they are for.

    Attributes:
        token: 32 bytes, another for each model and way of preparing it; `of` makes one.
        model_files, data_files: Descriptors, open to read and write; as many as
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
        """Files with a token for what a model is now, and how it is prepared.

        Its content counts, and of external data and of a prepared file their device, inode, size
        and times of change: with one that was written to, or is another, the token is another.

        Args:
            model: As for `Client.prepare`.
            model_files: As of the class.
            preference: As for `Client.prepare`.

        Raises:
            FormatError: The model names a file outside its folder.
            InputError: Constants of a model that was built lie in files; only their owner knows
                what they hold.
            OSError: A file cannot be read.
        """
        return cls(_token(model, preference), model_files)

    @property
    def files(self) -> tuple[int, ...]:
        """All, as they travel beside a message."""
        return self.model_files + self.data_files

    @property
    def indexes(self) -> CacheFiles:
        """What the message says of them."""
        count = len(self.model_files)
        return CacheFiles(tuple(range(count)), tuple(range(count, len(self.files))), self.token)


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
                "Constants of the model lie in files. Make its token of what they hold, 32 bytes."
            )
        yield from (encode_model(found.model(0 if found.gathered else None)), found.gathered)
    elif isinstance(model, bytes):
        yield model
    elif (path := Path(model)).suffix == PREPARED_SUFFIX:
        yield _identity(path)
    else:
        data = path.read_bytes()
        yield data
        for name, file in files_beside(path, data).items():
            yield from (name.encode(), _identity(file))


def _identity(path: Path) -> bytes:
    return repr(source_of(str(path.resolve()))).encode()
