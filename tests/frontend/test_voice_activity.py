"""The voice activity models of Silero, if their package is installed, against ONNX Runtime.

Their branches hold steps that fit one rank, batch or sampling rate each.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

import tightship

PACKAGE = find_spec("silero_vad")
FILES = [] if PACKAGE is None else sorted(Path(str(PACKAGE.origin)).parent.glob("data/*.onnx"))
STATE_NAMES = {"stateN": "state", "hn": "h", "cn": "c"}
"""Outputs that are the next run's inputs."""
SAMPLES = {16000: 576, 8000: 288}
"""Samples of a chunk, with those before it that the model looks back at, by sampling rate."""
CHUNKS = 12


def first_feeds(session: Any, rate: int, batch: int) -> dict[str, Any]:
    """A chunk of silence and the state before the first one."""
    named = {"input": (batch, SAMPLES[rate]), "state": (2, batch, 128)}
    return {
        each.name: np.array(rate)
        if each.name == "sr"
        else np.zeros(named.get(each.name, each.shape), np.float32)
        for each in session.get_inputs()
    }


@pytest.mark.skipif(not FILES, reason="needs the package silero-vad (its files, not torch)")
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rate", SAMPLES)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stream_of_speech(path: Path, rate: int, batch: int) -> None:
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(path)
    theirs = first_feeds(session, rate, batch)
    if "sr" not in theirs and rate != 16000:
        pytest.skip("the file has one sampling rate")
    if session.get_inputs()[0].shape[0] not in (None, batch, "batch", "sequence_length"):
        pytest.skip("the file has one batch")
    ours, random = dict(theirs), np.random.default_rng(batch)
    names = [output.name for output in session.get_outputs()]
    shapes = {name: array.shape for name, array in ours.items()}
    with tightship.load(path, shapes=shapes) as model:
        for chunk in range(CHUNKS):
            loudness = 0.1 * (1 + np.sin(chunk))
            audio = (loudness * random.standard_normal(shapes["input"])).astype(np.float32)
            wanted = dict(zip(names, session.run(None, theirs | {"input": audio}), strict=True))
            found = model.run(ours | {"input": audio})
            np.testing.assert_allclose(found[names[0]], wanted[names[0]], atol=1e-4)
            theirs |= {STATE_NAMES[name]: wanted[name] for name in names[1:]}
            ours |= {STATE_NAMES[name]: found[name] for name in names[1:]}
        for name in names[1:]:
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-3, atol=1e-3)
