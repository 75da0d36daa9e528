"""Encoded rows made real, against the `gguf` package, bit for bit."""

import gguf
import numpy as np
import pytest

import tightship
from tests.frontend.gguf.written import random_blocks
from tests.frontend.onnx.contrib.test_own import encoded_model
from tightship.engine.kernels.encoded_rows import CHUNK_BYTES, DECODERS, decode
from tightship.graph.row_codes import ROW_CODES


@pytest.mark.parametrize("kind", ROW_CODES)
def test_rows_are_the_numbers_that_llama_cpp_reads(kind: str) -> None:
    depth = 512
    rows = 2 * CHUNK_BYTES // depth + 3
    tensor = random_blocks(kind, rows, depth, 1)
    raw = np.frombuffer(tensor.raw, np.uint8).reshape(rows, -1)
    found = np.empty((rows, depth), np.float32)
    decode(kind, raw, found)
    wanted = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind])
    np.testing.assert_array_equal(found, wanted)


def test_every_code_has_a_decoder() -> None:
    assert DECODERS.keys() == ROW_CODES.keys()


def test_rows_that_only_a_run_knows_are_made_real() -> None:
    tensor = random_blocks("Q5_0", 6, 64, 1)
    raw = np.frombuffer(tensor.raw, np.uint8).reshape(6, -1)
    x = np.eye(64, dtype=np.float32)[:2]
    with tightship.load(encoded_model("Q5_0", None)) as loaded:
        found = loaded.run({"x": x, "w": raw, "i": np.array([2, 0])})["y"]
    wanted = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType["Q5_0"])
    np.testing.assert_allclose(found, wanted[:, :2].T, atol=1e-6)
