"""SHA-256 by the core.

`hashlib` loads OpenSSL, which would take 4 MiB of each process that shares a model.
"""

from typing import BinaryIO

from tightship._core import Sha256

PIECE_BYTES = 1 << 20


def sha256(*parts: bytes) -> Sha256:
    """Return the digest of parts, to which more may be added."""
    found = Sha256()
    for part in parts:
        found.update(part)
    return found


def hexdigest(*parts: bytes) -> str:
    """Return the digest of parts as hexadecimal digits."""
    return sha256(*parts).digest().hex()


def file_digest(file: BinaryIO) -> bytes:
    """Return the digest of a file from its position to its end."""
    found, piece = Sha256(), bytearray(PIECE_BYTES)
    while count := file.readinto(piece):  # type: ignore[attr-defined]
        found.update(memoryview(piece)[:count])
    return found.digest()
