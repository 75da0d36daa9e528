"""Sizes of encoded rows, against the `gguf` package."""

import gguf
import pytest

from tightship.graph.row_codes import ROW_CODES, row_bytes


@pytest.mark.parametrize("code", ROW_CODES)
def test_rows_have_the_bytes_of_llama_cpp(code: str) -> None:
    kind = gguf.GGMLQuantizationType[code]
    assert row_bytes(code, 512) == gguf.quants.quant_shape_to_byte_shape((512,), kind)[0]
    assert row_bytes(code, 512 + 16) == 0
