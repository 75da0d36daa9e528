"""Memory of an encoder's process, held against the operating system."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.embedding.exports import onnx_encoder
from tests.frontend.gguf.encoders import embedding_model, encoder
from tightship import GraphError
from tightship.embedding.encoder_file import open_encoder_file
from tightship.embedding.text_runs import TextRuns
from tightship.loading import load

SCRIPT = """
import json, resource, sys
from tests.embedding.texts import texts
from tightship.embedding import Embedder
from tightship.embedding.encoder_file import open_encoder_file

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

path, limited = sys.argv[1], json.loads(sys.argv[2])
file = open_encoder_file(path)
file.encoder.encode(" ".join(texts(3)))  # the vocabulary is outside the plan
given = [texts(60, 500, seed=seed) for seed in range(3)]
before = {"resident": status("VmRSS"), "data": status("VmData")}
if limited:
    limit = before["data"] + limited
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
with Embedder(path) as embedder:
    for each in given:
        embedder(each)
    print(json.dumps({
        "planned": embedder.peak_bytes, "programs": embedder.program_shapes,
        "gained": status("VmHWM") - before["resident"],
    }))
"""


def run(path: Path, limited: int = 0) -> dict[str, int]:
    command = [sys.executable, "-c", SCRIPT, str(path), json.dumps(limited)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


def test_a_process_stays_inside_what_is_told(tmp_path: Path) -> None:
    path = tmp_path / "e.gguf"
    path.write_bytes(embedding_model(context=512, layers=6))
    run(path)  # bytecode is compiled before
    found = run(path)
    assert found["gained"] <= found["planned"]


def test_inputs_of_other_names_are_refused(tmp_path: Path) -> None:
    path, made = tmp_path / "m.onnx", onnx_encoder(encoder())
    made.graph.input[2].name = "kinds"
    for node in made.graph.node:
        node.input[:] = ["kinds" if name == "token_type_ids" else name for name in node.input]
    path.write_bytes(made.SerializeToString())
    gguf = tmp_path / "e.gguf"
    gguf.write_bytes(embedding_model())
    with (
        load(path, shapes={"batch": 1, "tokens": 64}) as model,
        pytest.raises(GraphError, match="has the inputs attention_mask, input_ids, kinds"),
    ):
        TextRuns(model, open_encoder_file(gguf))
