"""Model files of either format are opened by their bytes."""

from pathlib import Path

import pytest

from tests import models
from tests.frontend.gguf.decoders import decoder
from tightship.errors import FormatError, InputError
from tightship.frontend.gguf import GgufFile
from tightship.frontend.model_file import open_model_bytes, open_model_file


def test_bytes_tell_the_format(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for data, is_gguf in ((decoder().written(), True), (models.mlp().SerializeToString(), False)):
        path.write_bytes(data)
        assert isinstance(open_model_file(path), GgufFile) is is_gguf
        assert isinstance(open_model_bytes(data), GgufFile) is is_gguf


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        open_model_file(tmp_path / "none.gguf")
    with pytest.raises(FormatError):
        open_model_bytes(b"neither")
    page = tmp_path / "page.gguf"
    page.write_text("<html>the model has moved</html>")
    with pytest.raises(FormatError, match=r"`page.gguf` is not a GGUF file"):
        open_model_file(page)
