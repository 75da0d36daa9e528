"""Models that open sessions, loaded in different ways."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests import decoders

SIZES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}


def test_a_shared_model_opens_a_session_over_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "decoder.onnx"
    file.write_bytes(decoders.llama())
    with (
        tightship.load(file, shapes=SIZES) as plain,
        tightship.load(file, shapes=SIZES, share=True) as shared,
    ):
        wanted, found = (model.session(32).step([1, 2, 3, 4, 5]) for model in (plain, shared))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_prepared_file_alone_is_refused(tmp_path: Path) -> None:
    prepared = tmp_path / "decoder.tship"
    tightship.prepare(decoders.llama(), prepared, shapes=SIZES)
    with (
        tightship.load(prepared) as alone,
        pytest.raises(tightship.InputError, match="share=True"),
    ):
        alone.session(32)


def test_several_threads_compute_as_one() -> None:
    with (
        tightship.load(decoders.llama(), shapes=SIZES, threads=2) as two,
        tightship.load(decoders.llama(), shapes=SIZES) as one,
    ):
        sessions = [model.session(64) for model in (two, one)]
        for ids in ([1, 2, 3, 4, 5], [6], [7]):
            found, wanted = (session.step(ids) for session in sessions)
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
