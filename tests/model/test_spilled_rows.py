"""Idle sessions whose rows go to files when their pool is full, and come back."""

import errno
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
WIDE = decoders.Size(layers=3, heads=4, shared=2, length=64, positions=4096)
RANDOM = np.random.default_rng(9)


def tokens(count: int) -> list[int]:
    return [int(token) for token in RANDOM.integers(0, 50, count)]


@pytest.fixture(scope="module")
def model() -> Iterator[tightship.Model]:
    with tightship.load(decoders.llama(WIDE), shapes=SIZES) as loaded:
        yield loaded


def spilling(folder: Path, spill: str = "1MiB", size: str = "500KiB") -> tightship.SessionPool:
    return tightship.SessionPool(size, at_cap="spill", spill_bytes=spill, spill_folder=folder)


@pytest.mark.parametrize("cache", [None, "float16", "bfloat16", "int8"])
def test_a_spilled_session_goes_on_with_the_same_bits(model, tmp_path: Path, cache) -> None:
    pool = spilling(tmp_path, size="500KiB" if cache is None else "200KiB")
    sessions = [model.session(512, chunk=16, pool=pool, cache=cache) for _ in range(4)]
    plain = [model.session(512, chunk=16, cache=cache) for _ in range(4)]
    for count in (64, 7, 1, 1):  # tokens came singly: computed again, bits would differ
        for session, other in zip(sessions, plain, strict=True):
            ids = tokens(count)
            np.testing.assert_array_equal(session.step(ids), other.step(ids))
            for name, array in session._rows.arrays.items():
                assert array.tobytes() == other._rows.arrays[name].tobytes()
    assert pool.evictions >= 4
    assert 0 < pool.spilled_bytes <= 1 << 20
    assert not [*tmp_path.iterdir()]
    del sessions, session
    gc.collect()
    assert (pool.used_bytes, pool.spilled_bytes) == (0, 0)


def test_what_changes_a_spilled_session_holds_for_its_file(model, tmp_path: Path) -> None:
    pool = spilling(tmp_path, size="2MiB")
    one, other, plain = (model.session(512, chunk=16, pool=p) for p in (pool, pool, None))
    ids = tokens(60)
    one.step(ids)
    plain.step(ids)
    assert one._idle.evict()
    one.truncate(41)
    plain.truncate(41)
    more = tokens(9)
    np.testing.assert_array_equal(one.step(more), plain.step(more))
    assert pool.spilled_bytes == 0
    assert one._idle.evict()
    fork, path = one.fork(), tmp_path / "text"
    np.testing.assert_array_equal(fork.step(more), plain.step(more))
    assert one._idle.evict()
    one.save(path)
    other.restore(path)
    assert other.length == 50
    assert one._idle.evict()
    one.reset()
    assert pool.spilled_bytes == 0
    assert fork._idle.evict()
    fork.close()
    assert pool.spilled_bytes == 0


def test_a_full_disk_or_cap_refuses_and_leaves_both_as_they_were(
    model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = spilling(tmp_path, "100KiB", "300KiB")
    one, two, plain = (model.session(512, chunk=16, pool=p) for p in (pool, pool, None))
    ids = tokens(64)
    wanted = plain.step(ids)
    np.testing.assert_array_equal(one.step(ids), wanted)
    held = pool.used_bytes
    with pytest.raises(tightship.CapacityError, match=r"192.0 KiB do not go to .*`spill_bytes`"):
        two.step(ids)
    pool = spilling(tmp_path, "1MiB", "300KiB")
    one, two = (model.session(512, chunk=16, pool=pool) for _ in range(2))
    one.step(ids)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(tightship.CapacityError, match="No space left on device"):
            two.step(ids)
    assert (one.length, two.length, pool.used_bytes, pool.spilled_bytes) == (64, 0, held, 0)
    assert pool.evictions == 0
    np.testing.assert_array_equal(two.step(ids), wanted)
    assert pool.evictions == 1


def test_rows_without_room_in_files_are_lost_if_that_is_wanted(model, tmp_path: Path) -> None:
    pool = tightship.SessionPool(
        "300KiB", at_cap="spill", spill_bytes="100KiB", spill_folder=tmp_path, at_spill_cap="evict"
    )
    one, two, plain = (model.session(512, chunk=16, pool=p) for p in (pool, pool, None))
    ids, more = tokens(64), tokens(16)
    one.step(ids)
    plain.step(ids)
    two.step(ids)
    assert (pool.evictions, pool.spilled_bytes) == (1, 0)
    np.testing.assert_array_equal(one.step(more), plain.step(more))


def test_a_file_that_cannot_be_read_is_computed_again(
    model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = spilling(tmp_path)
    one, plain = (model.session(512, chunk=16, pool=p) for p in (pool, None))
    ids, more = tokens(64), tokens(16)
    one.step(ids)
    plain.step(ids)
    assert one._idle.evict()

    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(os, "preadv", broken)
        np.testing.assert_array_equal(one.step(more), plain.step(more))
    assert pool.spilled_bytes == 0


def test_a_spilled_session_stays_so_if_the_pool_has_no_room(model, tmp_path: Path) -> None:
    pool = spilling(tmp_path, "1MiB", "300KiB")
    one, plain = (model.session(512, chunk=16, pool=p) for p in (pool, None))
    ids = tokens(64)
    one.step(ids)
    plain.step(ids)
    assert one._idle.evict()
    spilled = pool.spilled_bytes
    with pytest.raises(tightship.CapacityError, match="more for its caches"):
        one.step(tokens(128))
    assert (one.length, pool.used_bytes, pool.spilled_bytes) == (64, 0, spilled)
    more = tokens(5)
    np.testing.assert_array_equal(one.step(more), plain.step(more))


def test_a_spilled_session_shows_a_shared_prefix_again(model, tmp_path: Path) -> None:
    pool = spilling(tmp_path, size="800KiB")
    given = {"chunk": 16, "pool": pool, "share_prefix": True}
    one, two = (model.session(512, **given) for _ in range(2))
    plain = model.session(512, chunk=16)
    ids, more = tokens(70), tokens(6)
    one.step(ids)
    two.step(ids)
    plain.step(ids)
    held = pool.used_bytes
    assert two._idle.evict()
    np.testing.assert_array_equal(two.step(more), plain.step(more))
    assert pool.used_bytes == held


def test_arguments_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    make = tightship.SessionPool
    with pytest.raises(tightship.InputError, match="needs the most bytes of its files"):
        make("1MiB", at_cap="spill")
    with pytest.raises(tightship.InputError, match="are for it only"):
        make("1MiB", at_cap="evict", spill_bytes="1MiB")
    with pytest.raises(tightship.InputError, match="are for it only"):
        make("1MiB", spill_folder=tmp_path)
    with pytest.raises(tightship.InputError, match="are for it only"):
        make("1MiB", at_cap="evict", at_spill_cap="evict")
    with pytest.raises(tightship.InputError, match='must be "refuse" or "evict"'):
        make("1MiB", at_cap="spill", spill_bytes="1MiB", at_spill_cap="wait")
    with pytest.raises(tightship.InputError, match="no file can be made: No such file"):
        make("1MiB", at_cap="spill", spill_bytes="1MiB", spill_folder=tmp_path / "absent")
    with pytest.raises(tightship.InputError, match="spill_bytes"):
        make("1MiB", at_cap="spill", spill_bytes=-1)
