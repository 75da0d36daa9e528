"""Programs that are kept are made by another process, and the first one ends like later ones."""

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, decoder
from tests.loading.kept.test_programs import model_file
from tightship.loading import reading_process
from tightship.model.joint_steps import JointSteps
from tightship.prepared_cache import entries

FIRST = """
import json, sys
import numpy as np
import tightship
from tightship.model.joint_steps import JointSteps
with tightship.load(sys.argv[1]) as model:
    sessions = [model.session(32, chunk=8) for _ in range(2)]
    logits = [each.step(json.loads(sys.argv[2])).tolist() for each in sessions]
    joint = JointSteps.of(sessions[0]).step(sessions, [3, 5])
names = "onnx", "tightship.engine.lower.selection", "tightship.frontend.onnx"
print(json.dumps([logits[0], joint.tolist(), [name for name in names if name in sys.modules]]))
"""


def test_the_first_process_lowers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, prepared = model_file(tmp_path), tmp_path / "prepared"
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(prepared))
    monkeypatch.setenv("TIGHTSHIP_KEEP_PROGRAMS", "1")
    with tightship.load(path, keep_programs=False) as model:
        sessions = [model.session(32, chunk=8) for _ in range(2)]
        wanted = [each.step(IDS) for each in sessions][-1]
        joint = JointSteps.of(sessions[0]).step(sessions, [3, 5])
    time.sleep(2.1)  # a file that changed just now is not kept
    done = subprocess.run(
        [sys.executable, "-c", FIRST, path, json.dumps(IDS)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    found, together, imported = json.loads(done.stdout)
    assert imported == []
    assert np.array_equal(np.float32(found), wanted)
    assert np.array_equal(np.float32(together), joint)
    counts = sorted(str(entry.about.get("tokens", "own")) for entry in entries(prepared))
    assert counts == ["1", "8", "own", "own"], "the model's own program, and that of two sessions"


@pytest.mark.usefixtures("folder")
def test_no_process_is_started_for_what_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[None] = []
    monkeypatch.setattr(reading_process, "_start", lambda _files: started.append(None))
    path = tmp_path / "m.gguf"
    path.write_bytes(decoder(type_="F32", layers=2).written())
    for _ in range(2):
        with tightship.load(path) as model:
            model.session(32, chunk=8).step(IDS)
        assert len(started) == 1


def test_no_process_is_started_where_nothing_can_be_written(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[None] = []
    monkeypatch.setattr(reading_process, "_start", lambda _files: started.append(None))
    path = model_file(tmp_path)
    folder.write_bytes(b"")
    with tightship.load(path) as model:
        model.session(32, chunk=8).step(IDS)
    assert started == []
