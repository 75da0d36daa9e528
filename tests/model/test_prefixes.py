"""Prefixes that sessions share: in one process, in several, and the bits that they compute."""

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders
from tightship.resource.private_folder import runtime_folder

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
SIZE = decoders.Size(layers=2, heads=4, shared=2, length=64, positions=1024)
RANDOM = np.random.default_rng(3)
PROMPT = [int(token) for token in RANDOM.integers(0, 50, 150)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return runtime_folder() / "prefixes"


@pytest.fixture(scope="module")
def model() -> Iterator[tightship.Model]:
    with tightship.load(decoders.llama(SIZE), shapes=SIZES) as loaded:
        yield loaded


def opened(model: tightship.Model, pool: tightship.SessionPool | None = None) -> tightship.Session:
    return model.session(512, chunk=16, share_prefix=True, pool=pool)


def same(session: tightship.Session, other: tightship.Session) -> None:
    """Compare all rows and a further step, bit for bit."""
    np.testing.assert_array_equal(session.step([3, 4]), other.step([3, 4]))
    for name, array in session._rows.arrays.items():
        np.testing.assert_array_equal(array, other._rows.arrays[name])


@pytest.mark.parametrize("pooled", [False, True])
def test_an_equal_prefix_is_shown_and_computes_the_same_bits(model, folder, pooled) -> None:
    pool = tightship.SessionPool("4MiB") if pooled else None
    plain, first = model.session(512, chunk=16), opened(model, pool)
    np.testing.assert_array_equal(first.step(PROMPT), plain.step(PROMPT))
    assert first._rows.shared_bytes == 144 * 2 * 2 * 2 * 64 * 4
    assert len(list(folder.iterdir())) == 9
    held = pool.used_bytes if pool else 0
    first.step([1])
    second = opened(model, pool)
    np.testing.assert_array_equal(second.step(PROMPT), _logits(model))
    assert second._rows.shared_bytes == first._rows.shared_bytes
    if pool:
        assert pool.used_bytes - held <= 8 * 4096  # a page of each head, for the last six rows
    plain.step([1])
    same(first, plain)
    second.step([1])
    first.close()
    del first
    gc.collect()
    same(second, _stepped(model))
    second.close()
    del second
    gc.collect()
    assert not list(folder.iterdir())
    if pool:
        assert pool.used_bytes == 0


def test_texts_share_what_they_begin_with(model, folder) -> None:
    first, other, plain = opened(model), opened(model), model.session(512, chunk=16)
    first.step(PROMPT)
    text = PROMPT[:100] + PROMPT[:20]  # 96 equal tokens in whole blocks
    np.testing.assert_array_equal(other.step(text), plain.step(text))
    assert other._prefixes.published == 112
    assert len(list(folder.iterdir())) == 9 + 1
    same(other, plain)
    third, wanted = opened(model), model.session(512, chunk=16)
    np.testing.assert_array_equal(third.step(text + [1] * 9), wanted.step(text + [1] * 9))
    assert third._rows.shared_bytes == other._rows.shared_bytes + 16 * 2048
    same(third, wanted)


def _stepped(model: tightship.Model) -> tightship.Session:
    session = model.session(512, chunk=16)
    session.step(PROMPT)
    session.step([1])
    return session


def _logits(model: tightship.Model) -> np.ndarray:
    return model.session(512, chunk=16).step(PROMPT)


def test_truncated_and_forked_sessions_share_no_wrong_rows(model) -> None:
    first = opened(model)
    first.step(PROMPT)
    first.truncate(70)
    fork = first.fork()
    for session in (first, fork):
        session.step(PROMPT[:60])
    plain = model.session(512, chunk=16)
    plain.step(PROMPT[:70])
    plain.step(PROMPT[:60])
    for session in (first, fork):
        np.testing.assert_allclose(session.step([5]), plain.fork().step([5]), rtol=1e-4, atol=2e-5)
    text = PROMPT[:70] + PROMPT[:60]
    late, wanted = opened(model), model.session(512, chunk=16)
    np.testing.assert_array_equal(late.step(text), wanted.step(text))
    assert late._prefixes.whole >= 64


def test_tokens_that_came_singly_are_not_shared(model, folder) -> None:
    first = opened(model)
    for token in PROMPT[:40]:
        first.step([token])
    assert first._rows.shared_bytes == 0
    assert not list(folder.iterdir())


def test_an_evicted_session_shows_the_prefix_again(model) -> None:
    pool = tightship.SessionPool("650KiB", at_cap="evict")
    holder, session, other = (opened(model, pool) for _ in range(3))
    holder.step(PROMPT)
    session.step(PROMPT)
    filler = model.session(512, chunk=16, pool=pool)
    holder.step([1])
    filler.step(PROMPT[::-1])
    assert pool.evictions
    plain = model.session(512, chunk=16)
    plain.step(PROMPT)
    same(session, plain)
    other.close()


def test_files_that_are_not_such_rows_are_not_shown(model, folder) -> None:
    first = opened(model)
    first.step(PROMPT)
    keys = [link.name for link in folder.iterdir()]
    first.close()
    del first
    gc.collect()
    foreign = os.memfd_create("tightship prefix 0 9 x", os.MFD_CLOEXEC)
    for name in keys:
        (folder / name).symlink_to(f"/proc/{os.getpid()}/fd/{foreign}")
    second = opened(model)
    np.testing.assert_array_equal(second.step(PROMPT), _logits(model))
    third = opened(model)
    third.step(PROMPT)
    assert third._rows.shared_bytes == second._rows.shared_bytes > 0
    os.close(foreign)


def test_what_cannot_share_a_prefix_is_refused(model) -> None:
    with pytest.raises(tightship.InputError, match="multiple of 16"):
        model.session(500, share_prefix=True)
    with pytest.raises(tightship.InputError, match='`rows` must be "last"'):
        model.session(512, share_prefix=True, rows="all")


PROCESS = """
import sys
import tightship
from tests.model.test_prefixes import PROMPT, SIZES, opened
with tightship.load(sys.argv[1], shapes=SIZES, threads=int(sys.argv[2])) as model:
    session = opened(model)
    logits = session.step(PROMPT)
    print(session._prefixes.published, logits.tobytes().hex(), flush=True)
    sys.stdin.readline()
    more = session.step([7])
    print(more.tobytes().hex(), session._rows.shared_bytes, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_processes_of_a_user_share_a_prefix(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.llama(SIZE))
    environment = os.environ | {"PYTHONPATH": os.getcwd()}

    def process(threads: int = 1) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", PROCESS, str(path), str(threads)], env=environment, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    first = process()
    told = first.stdout.readline().split()
    before = {link.name: os.readlink(link) for link in folder.iterdir()}
    second = process()
    found = second.stdout.readline().split()
    assert found == told
    assert {link.name: os.readlink(link) for link in folder.iterdir()} == before
    first.kill()  # its prefix stays in the memory of the second
    first.wait()
    first.stdout.close()
    first.stdin.close()
    more, _ = second.communicate("\n\n")
    assert second.returncode == 0
    assert int(more.split()[1]) == 144 * 2 * 2 * 2 * 64 * 4
    third = process()  # finds links that lead nowhere
    again = third.stdout.readline().split()
    rest, _ = third.communicate("\n\n")
    assert (again, rest) == (told, more)
