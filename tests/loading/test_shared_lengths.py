"""`load(model, share=True)` at lengths other than the first: still one copy of the weights."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.zoo.exports import EXPORTS, VOCABULARY, export

FIRST = (2, 16)
OTHERS = ((2, 24), (1, 24), (1, 1), (5, 7), (3, 64))
PRIVATE_BYTES_MAX = 256 << 10
"""Of weights; what remains are tables that depend on lengths."""


def feeds(shape: tuple[int, int]) -> dict[str, np.ndarray]:
    random = np.random.default_rng(shape[1])
    return {"ids": random.integers(0, VOCABULARY, shape), "mask": np.ones(shape, np.int64)}


@pytest.fixture(params=EXPORTS)
def model(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    path = tmp_path / "model.onnx"
    path.write_bytes(export(request.param))
    return path


def test_weights_are_shared_at_every_length(model: Path) -> None:
    shapes = {"ids": FIRST, "mask": FIRST}
    with (
        tightship.load(model, shapes=shapes) as alone,
        tightship.load(model, shapes=shapes, share=True) as shared,
    ):
        held = alone.memory_stats().weights_bytes
        assert held > 20 * PRIVATE_BYTES_MAX
        for shape in OTHERS:
            wanted, found = (each.run(feeds(shape)) for each in (alone, shared))
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)
            assert shared.memory_stats().weights_bytes <= PRIVATE_BYTES_MAX
            assert alone.memory_stats().weights_bytes <= held + PRIVATE_BYTES_MAX
