"""Rows of the table of tensors."""

import struct

import pytest

from tests.frontend.gguf.written import TYPES, Tensor, row, text
from tightship.errors import FormatError
from tightship.frontend.gguf.cursor import Cursor
from tightship.frontend.gguf.tensor_table import placed, read_table

MATRIX = Tensor("Q8_0", (3, 64), b"")


def cursor(*rows: bytes) -> Cursor:
    return Cursor(memoryview(b"".join(rows)), "m")


def of(name: str, kind: int, offset: int, *lengths: int) -> bytes:
    head = text(name) + struct.pack(f"<I{len(lengths)}Q", len(lengths), *lengths)
    return head + struct.pack("<IQ", kind, offset)


def test_shapes_have_the_slowest_axis_first() -> None:
    (found,) = read_table(cursor(row("a", MATRIX, 96)), 1)
    assert (found.name, found.type.name, found.shape) == ("a", "Q8_0", (3, 64))
    assert (found.offset_bytes, found.size_bytes) == (96, 3 * 2 * 34)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([of("a" * 65, 0, 0, 4)], "the name of tensor 0 has 65 bytes; it must have at most 64"),
        ([of("a", 0, 0, 1, 1, 1, 1, 1)], "tensor `a` has 5 axes; it must have at most 4"),
        ([of("a", 4, 0, 4)], "tensor `a` has the type 4; types are 0 F32"),
        ([of("a", TYPES["Q8_0"], 0, 33)], "lengths .33.; .* a multiple of 32 for Q8_0"),
        ([of("a", 0, 0, 4, 0)], r"lengths \[4, 0\]; they must be at least 1"),
        ([of("a", 0, 0, 1 << 40, 1 << 40)], "it must end at 281474976710656 at most"),
        ([of("a", 0, 1 << 63, 4)], "begins at offset 9223372036854775808"),
        ([of("a", 0, 0, 4), of("a", 0, 32, 4)], "two tensors have the name `a`"),
        ([of("a", 0, 0, 4)[:-1]], "the file ends within the offset of tensor `a`"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: list[bytes], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_table(cursor(*rows), len(rows))


def test_tensors_lie_apart_at_aligned_offsets() -> None:
    def place(*offsets: int) -> dict[str, int]:
        rows = [row(str(index), MATRIX, offset) for index, offset in enumerate(offsets)]
        at = cursor(*rows)
        table = read_table(at, len(rows))
        return {name: each.offset_bytes for name, each in placed(at, table, 1000, 32).items()}

    assert place(224, 0) == {"0": 1224, "1": 1000}
    with pytest.raises(FormatError, match=r"offset of tensor `0` is 48; .* a multiple of 32"):
        place(48)
    with pytest.raises(FormatError, match=r"tensor `1` at offset 192 overlaps `0`, which ends at"):
        place(0, 192)
