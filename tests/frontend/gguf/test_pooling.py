"""Pooling of vectors, as a file says."""

from pathlib import Path

import pytest

from tests.frontend.gguf.decoders import decoder
from tests.frontend.gguf.encoders import encoder
from tightship.errors import FormatError
from tightship.frontend.gguf.pooling import open_pooling


@pytest.mark.parametrize(
    ("number", "name"), [(None, None), (0, "none"), (1, "mean"), (2, "cls"), (3, "last")]
)
def test_a_file_names_its_pooling(tmp_path: Path, number: int | None, name: str | None) -> None:
    path = tmp_path / "e.gguf"
    path.write_bytes(encoder(pooling=number).written())
    assert open_pooling(path) == (True, name)


def test_an_unknown_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "e.gguf"
    path.write_bytes(encoder(pooling=9).written())
    with pytest.raises(FormatError, match="must be a number of 0 to 4"):
        open_pooling(path)


def test_a_decoder_is_none(tmp_path: Path) -> None:
    path = tmp_path / "d.gguf"
    path.write_bytes(decoder().written())
    assert open_pooling(path) == (False, None)
