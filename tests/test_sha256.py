"""SHA-256 of the core agrees with that of `hashlib`."""

import hashlib
import io

import numpy as np
import pytest

from tightship import sha256
from tightship._core import Sha256

CONTENT = bytes(i * 7 % 251 for i in range(300))


@pytest.mark.parametrize("count", [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 300])
@pytest.mark.parametrize("part", [1, 37, 64, 300])
def test_digests_are_those_of_the_standard_in_any_parts(count: int, part: int) -> None:
    content = CONTENT[:count]
    parts = [content[i : i + part] for i in range(0, count, part)]
    assert sha256.hexdigest(*parts) == hashlib.sha256(content).hexdigest()
    assert sha256.sha256(*parts).digest() == hashlib.sha256(content).digest()


def test_more_may_be_added_after_a_digest_from_any_buffer() -> None:
    found = Sha256()
    found.update(CONTENT)
    first = found.digest()
    for more in (bytearray(CONTENT), memoryview(CONTENT), np.frombuffer(CONTENT, np.uint8)):
        found.update(more)
    assert first == hashlib.sha256(CONTENT).digest() != found.digest()
    assert found.digest() == hashlib.sha256(4 * CONTENT).digest()


def test_a_file_is_digested_from_its_position_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sha256, "PIECE_BYTES", 64)
    file = io.BytesIO(CONTENT)
    file.seek(10)
    assert sha256.file_digest(file) == hashlib.sha256(CONTENT[10:]).digest()
