"""Programs of a shared decoder's sessions are stored once, and processes read them without onnx."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.text.vocabularies import chat_model
from tightship.cli import main
from tightship.errors import FormatError
from tightship.model.joint_steps import JointSteps
from tightship.prepared_cache import entries, identity

TOKENS = np.arange(13)[None] % 50
READER = """
import json, sys
import numpy as np
import tightship
with tightship.load(sys.argv[1], share=True) as model:
    session = model.session(64, chunk=8)
    logits = session.step(np.arange(13)[None] % 50)
    session.save(sys.argv[2])
print(json.dumps([logits.tolist(), "onnx" in sys.modules, "tightship.engine.lower" in sys.modules]))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of prepared models."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))  # notes on files that are new as well
    return tmp_path / "prepared"


@pytest.fixture
def model(tmp_path: Path, folder: Path) -> Path:
    path = tmp_path / "llama.onnx"
    path.write_bytes(decoders.llama())
    assert not folder.exists()
    return path


def logits(path: Path, context: int = 64, **options: object) -> np.ndarray:
    with tightship.load(path, **options) as loaded:
        return loaded.session(context, chunk=8).step(TOKENS)


def test_another_process_runs_what_the_first_stored_without_onnx(
    model: Path, folder: Path, tmp_path: Path
) -> None:
    wanted = logits(model, share=True)
    assert len(entries(folder)) == 2, "the model, and the programs of its sessions"
    saved = tmp_path / "session"
    done = subprocess.run(
        [sys.executable, "-c", READER, model, saved], capture_output=True, text=True, check=True
    )
    found, *imported = json.loads(done.stdout)
    assert imported == [False, False]
    assert np.array_equal(np.float32(found), wanted)
    assert np.array_equal(wanted, logits(model))
    with tightship.load(model) as alone:  # its digest is that of a model whose graph was read
        session = alone.session(64, chunk=8)
        session.restore(saved)
        assert session.length == TOKENS.size


def test_programs_of_other_contexts_are_entries_of_their_own(
    model: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for context in (64, 32, 64):
        logits(model, context, share=True)
    assert len(entries(folder)) == 3
    about = [str(entry.about.get("session")) for entry in entries(folder)]
    assert sorted("context=64" in each for each in about) == [False, False, True]
    assert main(["cache", "list"]) == 0
    shown = capsys.readouterr().out
    assert all(shown.count(f"sessions of {context} tokens") == 1 for context in (32, 64)), shown


def test_programs_that_are_damaged_are_made_again(model: Path, folder: Path) -> None:
    wanted = logits(model, share=True)
    (stored,) = (e for e in entries(folder) if "session" in e.about)
    path = folder / stored.key / "model.tship"
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    assert np.array_equal(logits(model, share=True), wanted)
    assert path.read_bytes() != content


def test_programs_are_those_of_the_weights_they_were_made_over(model: Path, folder: Path) -> None:
    wanted = logits(model, share=True)
    other = decoders.llama(decoders.Size(layers=1))
    model.write_bytes(other)
    assert not np.array_equal(logits(model, share=True), wanted)
    assert len(entries(folder)) == 4


def joint_logits(path: str | Path, **options: object) -> list[object]:
    """Return logits of two joint steps, of which one session takes part in both."""
    with tightship.load(path, **options) as loaded:
        sessions = [loaded.session(64, chunk=8) for _ in range(3)]
        for session, token in zip(sessions, (3, 4, 5), strict=True):
            session.step([token, 7])
        joint = JointSteps.of(sessions[0])
        return [joint.step(two, [1, 2]).tolist() for two in (sessions[:2], sessions[1:])]


JOINT_READER = f"""
import json, sys
import tightship
from pathlib import Path
from tightship.model.joint_steps import JointSteps
{inspect.getsource(joint_logits)}
found = joint_logits(sys.argv[1], share=True)
print(json.dumps([found, "onnx" in sys.modules, "tightship.engine.lower" in sys.modules]))
"""


@pytest.fixture
def texts(tmp_path: Path, folder: Path) -> Path:
    """A decoder whose sessions can step together."""
    path = tmp_path / "chat.gguf"
    path.write_bytes(chat_model())
    assert not folder.exists()
    return path


def test_joint_steps_are_stored_for_other_processes(texts: Path, folder: Path) -> None:
    wanted = joint_logits(texts, share=True)
    assert len(entries(folder)) == 3, "the model, programs of its sessions, and of two at once"
    command = [sys.executable, "-c", JOINT_READER, str(texts)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found, *imported = json.loads(done.stdout)
    assert found == wanted == joint_logits(texts)
    assert imported == [False, False]
    assert len(entries(folder)) == 3


def test_a_joint_step_of_other_sessions_is_refused(texts: Path, folder: Path) -> None:
    with tightship.load(texts, share=True) as loaded:
        JointSteps.of(loaded.session(64, chunk=8)).make(2)
        (joint,) = (e for e in entries(folder) if "joint" in e.about)
        steps = loaded._sessions._programs.popitem()[1]  # type: ignore[union-attr]
        with pytest.raises(FormatError, match="does not have their caches"):
            steps.stored.joint(folder / joint.key / "model.tship", 3, steps.decoder)
