"""The decoder that bench_llama writes, against the equations of a Llama."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks import gguf_decoder
from benchmarks.gguf_decoder import BLOCK, Blocks, Llama
from benchmarks.llama_contender import SHAPES

import tightship
from tests.engine.state.loops import GrowingCaches

WIDTH, INSIDE, VOCABULARY = 64, 96, 70
IDS = [5, 3, 57, 28, 2, 46, 49, 31, 4]


def llama(bits: int, *, is_tied: bool) -> Llama:
    random = np.random.default_rng(bits)

    def blocks(rows: int, depth: int) -> Blocks:
        count = depth // BLOCK
        integers = random.integers(0, 256, (rows, count, BLOCK * bits // 8), np.uint8)
        spread = 0.3 * (1 << bits) * depth**0.5
        scales = random.uniform(0.5, 1.5, (rows, count)) / spread
        return Blocks(integers, scales.astype(np.float16), bits)

    tensors: dict[str, Blocks | np.ndarray] = {"token_embd.weight": blocks(VOCABULARY, WIDTH)}
    if not is_tied:
        tensors["output.weight"] = blocks(VOCABULARY, WIDTH)
    for name in ("blk.0.attn_norm", "blk.0.ffn_norm", "output_norm"):
        tensors[f"{name}.weight"] = random.uniform(0.5, 1.5, WIDTH).astype(np.float32)
    sizes = {"attn_q": (WIDTH, WIDTH), "attn_k": (32, WIDTH), "attn_v": (32, WIDTH),
             "attn_output": (WIDTH, WIDTH), "ffn_gate": (INSIDE, WIDTH), "ffn_up": (INSIDE, WIDTH),
             "ffn_down": (WIDTH, INSIDE)}  # fmt: skip
    for name, (rows, depth) in sizes.items():
        tensors[f"blk.0.{name}.weight"] = blocks(rows, depth)
    return Llama(1, 4, 2, 16, 1e4, 1e-5, tensors)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("is_tied", [False, True])
def test_the_written_decoder_computes_a_llama(tmp_path: Path, bits: int, is_tied: bool) -> None:
    model, path = llama(bits, is_tied=is_tied), tmp_path / "decoder.onnx"
    gguf_decoder.write(model, path, context=32, level=0)
    wanted = gguf_decoder.logits(model, IDS)
    with tightship.load(path, shapes=SHAPES) as loaded:
        session = loaded.session(32, rows="all")
        found = np.concatenate([session.step(IDS[:6]), session.step(IDS[6:])], 1)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    theirs = GrowingCaches(path).step(IDS)[0]
    np.testing.assert_allclose(found, theirs, rtol=1e-4, atol=1e-5)


def test_rounded_activations_stay_near(tmp_path: Path) -> None:
    model, path = llama(8, is_tied=True), tmp_path / "decoder.onnx"
    gguf_decoder.write(model, path, context=32)
    wanted = gguf_decoder.logits(model, IDS)[-1]
    with tightship.load(path, shapes=SHAPES) as loaded:
        found = loaded.session(32).step(IDS)[0, -1]
    assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()
    assert (found != wanted).any()


def test_other_types_are_refused() -> None:
    class Tensor:
        """Tensor of a type that is not known."""

        name, tensor_type = "blk.0.attn_q.weight", type("Kind", (), {"name": "Q4_K"})

    with pytest.raises(ValueError, match="is Q4_K; types that are known"):
        gguf_decoder._tensor(Tensor())


def test_blocks_of_a_file_are_read_in_their_order() -> None:
    class Tensor:
        """Row of one block with a scale of 0.5."""

        def __init__(self, kind: str, stored: np.ndarray) -> None:
            self.name, self.tensor_type = "x", type("Kind", (), {"name": kind})
            self.data = np.concatenate([np.array([0.5], np.float16).view(np.uint8), stored])[None]

    nibbles = np.arange(16, dtype=np.uint8) | np.arange(16, dtype=np.uint8)[::-1] << 4
    wanted = 0.5 * (np.concatenate([np.arange(16), np.arange(16)[::-1]]) - 8)
    np.testing.assert_array_equal(gguf_decoder._tensor(Tensor("Q4_0", nibbles)).floats()[0], wanted)
    bytes_ = np.arange(-16, 16, dtype=np.int8)
    found = gguf_decoder._tensor(Tensor("Q8_0", bytes_.view(np.uint8))).floats()[0]
    np.testing.assert_array_equal(found, 0.5 * np.arange(-16, 16))
