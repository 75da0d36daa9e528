"""A file of shared pages: what sessions show, and what is freed."""

import os

import numpy as np
import pytest

from tests.engine.state.test_cache_rows import ALIGNED, check, write
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.cache_runs import PAGE
from tightship.errors import OutOfMemoryError


def held_bytes(file: int) -> int:
    return os.fstat(file).st_blocks * 512


def test_pages_that_no_session_shows_are_freed() -> None:
    one, other = CacheRows(ALIGNED), CacheRows(ALIGNED)
    write(one, 0, 256)
    other.show(one, 256)
    (shared,) = one._shared
    assert held_bytes(shared.file) == one.shared_bytes == other.shared_bytes
    one.clear(0, 256)
    assert held_bytes(shared.file) == other.shared_bytes
    other.clear(128, 256)
    assert held_bytes(shared.file) == other.shared_bytes == shared.pages.count * PAGE
    check(other, 128)
    other.clear(0, 128)
    assert not one._shared
    assert not other._shared
    check(one, 0)
    write(one, 0, 256, seed=3)
    check(one, 256, seed=3)


def test_pages_are_read_only() -> None:
    one = CacheRows(ALIGNED)
    write(one, 0, 256)
    one.share(256)
    with pytest.raises(OSError, match="Bad address"):
        _read_into(one)
    check(one, 256)


def _read_into(rows: CacheRows) -> None:
    """Let the system write into shared rows, which it refuses where a store would end us."""
    read, write_ = os.pipe()
    os.write(write_, b"1234")
    try:
        os.readv(read, [rows.arrays["a"][0, 0].data.cast("B")])
    finally:
        os.close(read)
        os.close(write_)


def test_a_refused_file_leaves_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = CacheRows(ALIGNED), CacheRows(ALIGNED)
    write(one, 0, 100)
    calls = iter([True, False, True])

    def pwrite(file: int, data: memoryview, offset: int, own=os.pwrite) -> int:
        if next(calls):
            return int(own(file, data, offset))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OutOfMemoryError, match="sessions share: No space left"):
        other.show(one, 100)
    monkeypatch.undo()
    check(one, 100)
    assert 0 < one.shared_bytes < 6 * PAGE
    other.show(one, 100)
    check(other, 100)
    write(one, 100, 256)
    check(one, 256)
    np.testing.assert_array_equal(other.part("a", 0, 100), one.part("a", 0, 100))
