"""`load(model, share=True)`: one prepares, all map; and what the folder may do to it."""

import os
import subprocess
import sys
from mmap import PAGESIZE
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.small_models import dense, dense_result, nonzero
from tests.zoo.decoder import SMALL, decoder
from tightship.cli.process import usage_of_file
from tightship.engine.weights.weight_store import MappedBytes
from tightship.errors import CapacityError, InputError
from tightship.prepared_cache import clear, entries, identity

SHAPES = {"x": (3, 32)}
X = np.random.default_rng(1).standard_normal(SHAPES["x"]).astype(np.float32)
HIDDEN = 1 << 13
ALONE = "is loaded for this process alone: "


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.delenv("TIGHTSHIP_CACHE_SIZE", raising=False)
    return tmp_path / "prepared"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "dense.onnx"
    path.write_bytes(dense(hidden=HIDDEN)[0])
    return path


def check(model: Path | bytes, **options: object) -> None:
    with tightship.load(model, shapes=SHAPES, share=True, **options) as loaded:
        wanted = dense_result(X, dense(hidden=HIDDEN)[1])
        assert np.allclose(loaded(X), wanted, rtol=1e-3, atol=1e-3)


def prepared_file(folder: Path) -> Path:
    (path,) = folder.glob("*/model.tship")
    return path


@pytest.mark.parametrize("options", [{}, {"threads": 2}, {"max_memory": "1GiB"}])
def test_it_computes_what_it_does_without(folder: Path, model: Path, options: dict) -> None:
    for _ in range(2):
        check(model, **options)
    assert [entry.is_complete for entry in entries(folder)] == [True]


def test_bytes_are_shared_as_files_are(folder: Path, model: Path) -> None:
    for _ in range(2):
        check(model.read_bytes())
    assert len(entries(folder)) == 1


def test_a_limit_that_does_not_hold_it_is_kept(folder: Path, model: Path) -> None:
    for _ in range(2):
        with pytest.raises(CapacityError, match="more than the limit"):
            tightship.load(model, shapes=SHAPES, share=True, max_memory="1MiB")
    assert len(entries(folder)) == 1


def test_a_damaged_file_is_made_anew(folder: Path, model: Path) -> None:
    check(model)
    path = prepared_file(folder)
    content = path.read_bytes()
    path.write_bytes(content[:-1])
    check(model)
    assert path.read_bytes() == content


def test_what_runs_stays_whole_when_the_folder_is_cleared(folder: Path, model: Path) -> None:
    with tightship.load(model, shapes=SHAPES, share=True) as loaded:
        before = loaded(X)
        clear(folder)
        assert entries(folder) == []
        assert np.array_equal(loaded(X), before)


def held_after_other_shapes(model: Path, *, share: bool) -> int:
    """Bytes of the process's own that a model has which has run with several shapes."""
    weights = dense(hidden=HIDDEN)[1]
    with tightship.load(model, shapes=SHAPES, share=share) as loaded:
        for rows in (5, 1, 17, 3, 5):
            x = np.random.default_rng(rows).standard_normal((rows, 32)).astype(np.float32)
            assert np.allclose(loaded(x), dense_result(x, weights), rtol=1e-3, atol=1e-3)
        return loaded._programs.resource.current_bytes


@pytest.mark.usefixtures("folder")
def test_other_shapes_come_from_the_file_over_the_same_weights(model: Path) -> None:
    weights_bytes = tightship.plan(model, shapes=SHAPES).weights_bytes
    whole_pages = -(-weights_bytes // PAGESIZE) * PAGESIZE
    for _ in range(2):
        shared = held_after_other_shapes(model, share=True)
        assert shared == held_after_other_shapes(model, share=False) - whole_pages


def test_a_limit_holds_for_other_shapes_too(folder: Path, model: Path) -> None:
    limit = tightship.plan(model, shapes=SHAPES).peak_bytes + (1 << 20)
    with tightship.load(model, shapes=SHAPES, share=True, max_memory=limit) as loaded:
        with pytest.raises(CapacityError, match="more than the limit"):
            loaded(np.zeros((1000, 32), np.float32))
        assert loaded(X).shape == (3, 8)
    assert folder.exists()


def test_a_file_that_has_changed_makes_no_further_programs(folder: Path, model: Path) -> None:
    with tightship.load(model, shapes=SHAPES, share=True) as loaded:
        model.write_bytes(dense(hidden=8)[0])
        with pytest.raises(InputError, match="has changed since it was loaded; load it again"):
            loaded(np.zeros((5, 32), np.float32))
        assert np.allclose(
            loaded(X), dense_result(X, dense(hidden=HIDDEN)[1]), rtol=1e-3, atol=1e-3
        )
    assert folder.exists()


def test_a_model_with_steps_in_python_is_loaded_alone(folder: Path) -> None:
    with pytest.warns(RuntimeWarning, match=ALONE) as said:
        loaded = tightship.load(nonzero(), share=True)
    assert [warning.filename for warning in said] == [__file__]
    x = np.eye(1000, dtype=np.float32)
    with loaded:
        assert loaded(x)[0].shape == (2, 1000)
    assert not any(entry.is_complete for entry in entries(folder))


def test_a_prepared_model_is_shared_already(folder: Path, model: Path, tmp_path: Path) -> None:
    tightship.prepare(model, tmp_path / "dense.tship", shapes=SHAPES)
    check(tmp_path / "dense.tship")
    assert not folder.exists()


def test_nothing_is_measured_for_what_is_shared(folder: Path, model: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave `tune` out"):
        tightship.load(model, shapes=SHAPES, share=True, tune=tmp_path / "tuned.json")
    assert not folder.exists()


CODE = """
import sys, numpy, tightship
with tightship.load(sys.argv[1], shapes={"x": (3, 32)}, share=True) as model:
    model(numpy.ones((3, 32), "float32"))
    print("onnx" in sys.modules, flush=True)
    sys.stdin.read()
"""


def start(model: Path, *before: str, warnings: str = "error") -> "subprocess.Popen[bytes]":
    command = [*before, sys.executable, "-W", warnings, "-c", CODE, str(model)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)


def test_of_processes_that_start_together_one_prepares(folder: Path, model: Path) -> None:
    os.utime(model, (1, 1))
    group = [start(model) for _ in range(4)]
    read_onnx = [process.stdout.readline() for process in group]
    shares = [usage_of_file(process.pid, prepared_file(folder)) for process in group]
    for process in group:
        process.communicate()
    assert [process.returncode for process in group] == [0] * 4
    assert len(read_onnx) == 4
    size = prepared_file(folder).stat().st_size
    assert sum(share.pss_bytes for share in shares) < 1.2 * size


@pytest.mark.usefixtures("folder")
def test_a_process_that_finds_it_prepared_reads_no_onnx(model: Path, monkeypatch) -> None:
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    check(model)
    with start(model) as process:
        assert process.communicate()[0] == b"False\n"


def test_one_killed_while_it_prepares_is_followed_by_another(folder: Path, model: Path) -> None:
    with start(model) as process:
        while process.poll() is None and not list(folder.glob("*/lock")):
            pass
        process.kill()
    check(model)
    assert [entry.is_complete for entry in entries(folder)] == [True]


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && shift && exec "$@"'


def test_a_folder_that_is_read_only_serves_what_it_has(folder: Path, model: Path) -> None:
    before = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh"]
    folder.mkdir(mode=0o700)
    probe = subprocess.run([*before, folder, "true"], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("namespaces are not allowed here")
    with start(model, *before, str(folder)) as process:
        process.communicate()
    assert process.returncode == 1  # the warning, an error here: nothing can be prepared
    with start(model, *before, str(folder), warnings="always") as process:
        assert f"`{model.name}` {ALONE}".encode() in process.communicate()[1]
    assert process.returncode == 0
    check(model)
    with start(model, *before, str(folder)) as process:
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.usefixtures("folder")
def test_sessions_map_the_weights(is_tied: bool) -> None:
    """A decoder's sessions use the stored weights, also in a process that finds the file."""
    sizes = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1,
             "total_sequence_length": 2}  # fmt: skip
    data = decoder(SMALL, past=3, is_tied=is_tied).model
    with tightship.load(data, shapes=sizes) as alone:
        wanted = alone.session(16).step([3, 1, 4, 1, 5])
    for _ in range(2):
        with tightship.load(data, shapes=sizes, share=True) as loaded:
            session = loaded.session(16)
            np.testing.assert_array_equal(session.step([3, 1, 4, 1, 5]), wanted)
            copies = session._programs.packed
            own = [c for c in copies if not isinstance(c.block, MappedBytes)]
            mapped = sum(copy.weight.size_bytes for copy in copies if copy not in own)
            assert mapped >= loaded.plan.weights_bytes * 0.9
            assert sum(copy.weight.size_bytes for copy in own) < 1 << 12
