"""Matrices taken apart once, in a file that later processes map."""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, decoder
from tests.loading.kept.test_weights import packed
from tightship.engine.program.program import PackedWeight
from tightship.engine.weights.weight_store import MappedBytes, mapped_copy
from tightship.errors import FormatError
from tightship.frontend.gguf.parts import integers_and_scales, plain
from tightship.frontend.gguf.shards import open_shards
from tightship.graph.row_by_row import RowByRow
from tightship.loading.kept import matrices
from tightship.loading.kept.matrices import (
    mapped_parts,
    parts_bytes,
    read_parts,
    taken_apart,
    write_parts,
)
from tightship.prepared_cache import entries
from tightship.prepared_cache.lock import locked

FILES = [["m.gguf", "1:2"]]


@pytest.fixture(autouse=True)
def least(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models pay, too."""
    monkeypatch.setattr(matrices, "PARTS_BYTES_MIN", 1)


@pytest.fixture
def weights(tmp_path: Path) -> list[PackedWeight]:
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_0").written())
    tensors = open_shards(path).tensors
    constants = [plain(tensors["output_norm.weight"])]
    for name in ("token_embd.weight", "blk.0.ffn_up.weight", "token_embd.weight"):
        constants += integers_and_scales(tensors[name])
    return [packed(each) for each in constants]


def test_parts_are_mapped_where_they_were_written(
    weights: list[PackedWeight], tmp_path: Path
) -> None:
    parts, path = taken_apart(weights), tmp_path / "parts"
    assert [parts.index(each) for each in parts] == [0, 1, 2, 3], "each once, and no vector"
    write_parts(path, parts, FILES)
    assert path.stat().st_size < parts_bytes(parts) + 2 * matrices.PAGE_BYTES
    found = mapped_parts(weights, read_parts(path, parts, FILES))
    assert found[0] is weights[0]
    for weight, mapped in zip(weights[1:], found[1:], strict=True):
        copy = mapped_copy(mapped)
        assert copy is not None
        assert isinstance(copy.block, MappedBytes)
        wanted = np.ascontiguousarray(weight.constant.array()).view(np.uint8).reshape(-1)
        assert np.array_equal(copy.array(), wanted)
        assert copy.address % 64 == 0
    assert mapped_copy(weights[1]) is None


def test_few_bytes_do_not_pay(weights: list[PackedWeight], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrices, "PARTS_BYTES_MIN", 1 << 20)
    assert taken_apart(weights) == []


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _without_rows(path: Path) -> None:
    write_parts(path, [], FILES)


@pytest.mark.parametrize("damage", [_cut, _without_rows, lambda path: path.write_bytes(b"")])
def test_a_file_that_is_not_whole_is_refused(
    damage: Callable[[Path], object], weights: list[PackedWeight], tmp_path: Path
) -> None:
    parts, path = taken_apart(weights), tmp_path / "parts"
    write_parts(path, parts, FILES)
    with pytest.raises(FormatError, match="changed"):
        read_parts(path, parts, [["m.gguf", "1:3"]])
    damage(path)
    with pytest.raises(FormatError):
        read_parts(path, parts, FILES)


def logits(path: Path, **options: int) -> tuple[np.ndarray, int]:
    """Return the logits, and the bytes of matrices that the process has for itself."""
    with tightship.load(path, **options) as model:
        session = model.session(32, chunk=8)
        found = session.step(IDS)
        parts = [copy for copy in session._programs.packed
                 if isinstance(copy.weight.constant, RowByRow)]  # fmt: skip
        own = [copy for copy in parts if not isinstance(copy.block, MappedBytes)]
        return found, sum(copy.weight.size_bytes for copy in own)


@pytest.mark.parametrize("type_", ["Q4_0", "Q8_0"])
def test_later_loads_map_what_one_took_apart(type_: str, tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_=type_, layers=2).written())
    wanted, own = logits(path, keep_programs=False)
    assert own > 0
    logits(path)
    for options in ({}, {}, {"threads": 2}, {"threads": 2}):
        found, own = logits(path, **options)
    assert np.array_equal(found, wanted)
    assert own == 0
    assert sum("matrices" in entry.about for entry in entries(folder)) == 1, "for all threads"
    for file in folder.glob("*/model.tship"):
        if file.stat().st_size > 8000:
            file.unlink()
    assert np.array_equal(logits(path)[0], wanted)


def test_a_process_waits_for_one_that_takes_them_apart(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_0", layers=2).written())
    wanted = logits(path)[0]
    (key,) = (entry.key for entry in entries(folder) if "matrices" in entry.about)
    (folder / key / "model.tship").unlink()
    found: list[tuple[np.ndarray, int]] = []
    other = threading.Thread(target=lambda: found.append(logits(path)))
    with locked(folder / key / "lock"):
        other.start()
        other.join(0.5)
        assert other.is_alive()
    other.join()
    assert np.array_equal(found[0][0], wanted)
    assert found[0][1] == 0


def test_a_cache_too_small_leaves_them_to_each_process(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="Q4_0", layers=2).written())
    monkeypatch.setenv("TIGHTSHIP_CACHE_SIZE", "4KiB")
    wanted, own = logits(path, keep_programs=False)
    for _ in range(2):
        found = logits(path)
        assert np.array_equal(found[0], wanted)
        assert found[1] == own
    assert not any("matrices" in entry.about for entry in entries(folder))
