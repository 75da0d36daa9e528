"""Bodies put where their tensors can be used in place."""

import numpy as np
import pytest

from tightship.driver.oip.http.body import (
    ALIGNMENT_BYTES,
    SMALL_BYTES,
    BodyBuffer,
    TooLargeError,
    check_length,
)
from tightship.driver.oip.http.message import HEADER_LENGTH

LARGE = SMALL_BYTES + 100


@pytest.mark.parametrize("header_bytes", [0, 1, 77, 128])
def test_the_bytes_behind_the_header_are_aligned(header_bytes):
    headers = {"content-length": str(LARGE), HEADER_LENGTH: str(header_bytes)}
    buffer = BodyBuffer(headers, LARGE)
    whole = np.random.default_rng(0).bytes(LARGE)
    for start in range(0, LARGE, 1000):
        buffer.add(whole[start : start + 1000])
    body = buffer.body()
    assert bytes(body) == whole
    assert np.frombuffer(body[header_bytes:], np.uint8).ctypes.data % ALIGNMENT_BYTES == 0


@pytest.mark.parametrize("said", [{}, {"content-length": "10"}, {"content-length": str(LARGE)}])
def test_a_body_has_its_limit_whatever_is_said_of_its_length(said):
    buffer = BodyBuffer(said, LARGE)
    buffer.add(bytes(LARGE))
    with pytest.raises(TooLargeError):
        buffer.add(b"x")


def test_a_length_that_is_too_large_or_none_is_refused():
    check_length({}, 10)
    check_length({"content-length": "10"}, 10)
    for said in ("11", "-1", "x", "²", "9" * 30):
        with pytest.raises(TooLargeError):
            check_length({"content-length": said}, 10)
