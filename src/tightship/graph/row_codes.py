"""Encodings of rows of real numbers, as GGUF files have them, by llama.cpp's names."""

from collections.abc import Mapping

ROW_CODES: Mapping[str, tuple[int, int]] = {
    "F16": (32, 64), "BF16": (32, 64), "Q4_1": (32, 20), "Q5_0": (32, 22), "Q5_1": (32, 24),
    "Q4_K": (256, 144), "Q5_K": (256, 176), "Q6_K": (256, 210),
}  # fmt: skip
"""Elements of a block and its bytes; halves are taken 32 at a time."""

HALVES = frozenset({"F16", "BF16"})
"""Encodings without blocks."""


def row_bytes(code: str, depth: int) -> int:
    """Return the bytes of a row of `depth` elements; 0 if these are not whole blocks."""
    elements, size = ROW_CODES[code]
    return 0 if depth % elements else depth // elements * size
