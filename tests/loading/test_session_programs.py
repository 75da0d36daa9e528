"""Prepared files with programs of sessions open them without onnx and without the ONNX file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.small_models import dense
from tightship.cli import main

TOKENS = np.arange(13)[None] % 50
READER = """
import json, sys
import numpy as np
import tightship
with tightship.load(sys.argv[1]) as model:
    session = model.session(64, chunk=8)
    logits = session.step(np.arange(13)[None] % 50)
modules = ("onnx", "tightship.engine.lower", "_hashlib")
print(json.dumps([logits.tolist(), [name in sys.modules for name in modules]]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a decoder and what was prepared of it, for 64 and 32 tokens."""
    folder = tmp_path_factory.mktemp("prepared")
    (folder / "llama.onnx").write_bytes(decoders.llama())
    tightship.prepare(folder / "llama.onnx", folder / "llama.tship", context=[64, 32, 64], chunk=8)
    return folder


def logits(path: Path, context: int, **options: object) -> np.ndarray:
    with tightship.load(path) as model:
        return model.session(context, **options).step(TOKENS)


def test_a_process_opens_a_session_from_the_file_alone(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.tship"
    copy.write_bytes((folder / "llama.tship").read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", READER, copy], capture_output=True, text=True, check=True
    )
    found, imported = json.loads(done.stdout)
    assert imported == [False, False, False]
    assert np.array_equal(np.float32(found), logits(folder / "llama.onnx", 64, chunk=8))


@pytest.mark.parametrize(("context", "chunk"), [(32, 8), (64, 4), (64, 128)])
def test_contexts_and_chunks_of_the_file_serve_what_is_asked_for(
    folder: Path, context: int, chunk: int
) -> None:
    found = logits(folder / "llama.tship", context, chunk=chunk)
    wanted = logits(folder / "llama.onnx", context, chunk=min(chunk, 8))
    assert np.array_equal(found, wanted)


def test_other_contexts_are_refused_with_the_command(folder: Path) -> None:
    with (
        tightship.load(folder / "llama.tship") as model,
        pytest.raises(tightship.InputError, match=r"tightship prepare .* --context 16,32,64`"),
    ):
        model.session(16)


def test_sessions_have_the_batch_and_the_caches_that_they_were_prepared_with(
    folder: Path,
) -> None:
    path, twice = folder / "int8.tship", np.concatenate([TOKENS, TOKENS[:, ::-1]])
    given = {"batch_size": 2}
    tightship.prepare(folder / "llama.onnx", path, shapes=given, context=64, cache="int8")
    with tightship.load(path) as model, tightship.load(folder / "llama.onnx", shapes=given) as file:
        session, own = (each.session(64, batch=2, cache="int8") for each in (model, file))
        assert np.array_equal(session.step(twice), own.step(twice))
        assert session.state_bytes == own.state_bytes


def test_a_limit_of_loading_counts_the_caches(folder: Path) -> None:
    path = folder / "llama.tship"
    limit = tightship.plan(path).peak_bytes + 4096
    with (
        tightship.load(path, max_memory=limit) as model,
        pytest.raises(tightship.CapacityError, match="its caches"),
    ):
        model.session(64)


def test_a_model_that_has_no_sessions_is_refused_before_a_file_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.tship"
    with pytest.raises(tightship.InputError, match="Sessions need an ONNX file of a decoder"):
        tightship.prepare(dense(4)[0], path, context=64)
    with pytest.raises(tightship.GraphError, match="no caches"):
        tightship.prepare(dense()[0], path, shapes={"x": (4, 32)}, context=64)
    with pytest.raises(tightship.InputError, match="least is 8"):
        tightship.prepare(decoders.llama(), path, context=4)
    assert not path.exists()


def test_the_command_prepares_and_plans_sessions(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.tship"
    assert main(["prepare", str(folder / "llama.onnx"), "-o", str(path), "--context", "16,32"]) == 0
    assert main(["verify", str(path)]) == 0
    capsys.readouterr()
    assert main(["plan", str(path), "--context", "16,32", "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)["contexts"]
    assert [each["context"] for each in planned] == [16, 32]
    assert main(["plan", str(path), "--context", "64"]) == 2
    assert "only of 16, 32" in capsys.readouterr().err
    assert main(["prepare", str(folder / "llama.onnx"), "-o", str(path), "--cache", "int8"]) == 2
