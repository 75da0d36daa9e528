"""Constants that are the same bytes of a file are packed once."""

from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.zoo.decoder import SMALL, Quantized, decoder

SIZE = SMALL


def loaded(tmp_path: Path, *, is_tied: bool, without: tuple[str, ...] = ()) -> tuple[int, bytes]:
    """Bytes of weights, and the logits."""
    case = decoder(SIZE, Quantized(8), is_tied=is_tied)
    path = tmp_path / "model.onnx"
    path.write_bytes(case.model)
    shapes = {name: array.shape for name, array in case.feeds.items()}
    with tightship.load(path, shapes=shapes, without=without) as model:
        return model.plan.weights_bytes, np.array(model.run(case.feeds)["logits"]).tobytes()


def test_a_tied_table_is_held_once(tmp_path: Path) -> None:
    held, logits = loaded(tmp_path, is_tied=True)
    apart, same = loaded(tmp_path, is_tied=True, without=("share_tables",))
    table = SIZE.vocabulary * SIZE.width
    assert apart - held == pytest.approx(table * (1 + 4 / 32), abs=256)
    assert logits == same
