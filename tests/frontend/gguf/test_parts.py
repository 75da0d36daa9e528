"""Matrices as constants, against the `gguf` package."""

import gguf
import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import IDS, decoder, logits
from tests.frontend.gguf.written import random_blocks, written
from tightship.engine.kernels.block_weights import BlockForm, dequantize
from tightship.frontend.gguf.parts import BITS, PLAIN, encoded_rows, integers_and_scales, plain
from tightship.frontend.gguf.shards import Placed, contents_of
from tightship.graph import MappedFile

ROWS, DEPTH = 5, 96


def placed(kind: str) -> tuple[Placed, np.ndarray]:
    """Return a random matrix of a file, and its numbers."""
    tensor = random_blocks(kind, ROWS, DEPTH, 1)
    file = MappedFile.of_bytes(written({}, {"x": tensor}), "m")
    raw = np.frombuffer(tensor.raw, np.uint8).reshape(ROWS, -1)
    wanted = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType[kind])
    return contents_of([file], None).tensors["x"], wanted.astype(np.float32)


@pytest.mark.parametrize("kind", BITS)
def test_integers_and_scales_are_the_numbers_of_the_blocks(kind: str) -> None:
    given, wanted = placed(kind)
    integers, scales = integers_and_scales(given)
    found = np.empty((ROWS, DEPTH), np.float32)
    form = BlockForm(ROWS, DEPTH, BITS[kind], 32)
    dequantize(form, integers.array(), scales.array(), None, found)
    np.testing.assert_array_equal(found, wanted)
    held = integers.array().nbytes + scales.array().nbytes
    assert held == given.tensor.size_bytes


@pytest.mark.parametrize("kind", ["F16", "Q4_1", "Q5_0"])
def test_encoded_rows_are_the_bytes_of_the_file(kind: str) -> None:
    given, _ = placed(kind)
    constant = encoded_rows(given)
    assert constant is not None
    raw = random_blocks(kind, ROWS, DEPTH, 1).raw
    np.testing.assert_array_equal(constant.array(), np.frombuffer(raw, np.uint8).reshape(ROWS, -1))


def test_halves_that_kernels_do_not_take_become_float32() -> None:
    file = MappedFile.of_bytes(written({}, {"x": random_blocks("F16", 3, 40, 1)}), "m")
    assert encoded_rows(contents_of([file], None).tensors["x"]) is None
    model = decoder("llama", "F16", feed_forward_length=40)
    with tightship.load(model.written()) as loaded:
        found = loaded.session(32).step(IDS)[0, -1]
    np.testing.assert_allclose(found, logits(model)[-1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", PLAIN)
def test_numbers_stay_where_they_are(kind: str) -> None:
    given, wanted = placed(kind)
    constant = plain(given)
    assert constant.offset_bytes == given.tensor.offset_bytes
    np.testing.assert_array_equal(constant.array().astype(np.float32), wanted)
