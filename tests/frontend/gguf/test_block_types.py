"""Sizes of blocks, against the `gguf` package."""

import gguf

from tightship.frontend.gguf.block_types import BLOCK_TYPES


def test_blocks_have_the_sizes_of_llama_cpp() -> None:
    known = {kind.value: (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    found = {number: (t.name, t.elements, t.size_bytes) for number, t in BLOCK_TYPES.items()}
    assert {number: known[number] for number in found} == found
