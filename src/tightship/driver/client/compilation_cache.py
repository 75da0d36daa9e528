"""Files of a client in which a driver keeps a prepared model."""

from dataclasses import dataclass

from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.rules.status import CACHE_TOKEN_BYTES


@dataclass(frozen=True, slots=True)
class CompilationCache:
    """Open files, and the name of the model that they are for.

    Attributes:
        token: 32 bytes, another for each model and way of preparing it; a digest serves.
        model_files, data_files: Descriptors, open to read and write; as many as
            `Client.capabilities` says.
    """

    token: bytes
    model_files: tuple[int, ...]
    data_files: tuple[int, ...] = ()

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
