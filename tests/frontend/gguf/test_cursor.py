"""Reading within the bytes of a file."""

import struct

import pytest

from tests.frontend.gguf.written import text
from tightship.errors import FormatError
from tightship.frontend.gguf.cursor import Cursor


def test_numbers_and_texts_follow_one_another() -> None:
    data = struct.pack("<IQ", 7, 1 << 40) + text("Größe") + b"rest"
    cursor = Cursor(memoryview(data), "m")
    assert (cursor.u32("a"), cursor.u64("b"), cursor.text("c", 9)) == (7, 1 << 40, "Größe")
    assert cursor.left == 4


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (text("x")[:-1], "the file ends within a name .*byte 8 of 8.*Download"),
        (text("x" * 10), "a name has 10 bytes; it must have at most 9"),
        (text(b"\xff"), "a name is not UTF-8"),
        (struct.pack("<Q", (1 << 64) - 1), "at most 9"),
        (b"abc", "the file ends within the length of a name"),
    ],
)
def test_texts_that_do_not_fit_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        Cursor(memoryview(data), "m").text("a name", 9)


def test_texts_are_skipped_within_the_file() -> None:
    data = text("ab") + text("") + b"."
    cursor = Cursor(memoryview(data), "m")
    assert cursor.skip_texts(2, "texts") == 0
    assert cursor.left == 1
    for cut in (len(data) - 2, 9, 3):
        with pytest.raises(FormatError, match="ends within texts"):
            Cursor(memoryview(data[:cut]), "m").skip_texts(2, "texts")


def test_counts_are_bounded_by_the_bytes_left() -> None:
    cursor = Cursor(memoryview(bytes(100)), "m")
    assert cursor.bounded(10, 10, 50, "the count") == 10
    with pytest.raises(FormatError, match="the count is 11, for which 100 bytes are too few"):
        cursor.bounded(11, 10, 50, "the count")
    with pytest.raises(FormatError, match="the count is 51; it must be at most 50"):
        cursor.bounded(51, 1, 50, "the count")
