"""Values of a header, by their types."""

import struct
from typing import Any

import numpy as np
import pytest

from tests.frontend.gguf.written import value
from tightship.errors import FormatError
from tightship.frontend.gguf.cursor import Cursor
from tightship.frontend.gguf.fields import Kind, Numbers, Text, Texts, read_field


def read(raw: bytes) -> Any:
    cursor = Cursor(memoryview(raw), "m")
    found = read_field(cursor, "k")
    assert cursor.left == 0
    return found


@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"])
def test_integers_of_each_type_are_read(kind: str) -> None:
    assert read(value((kind, 100))) == 100


def test_other_values_are_read() -> None:
    assert read(value(0.5)) == read(value(("f64", 0.5))) == 0.5
    assert read(value(True)) is True
    found = read(value("Grüße"))
    assert isinstance(found, Text)
    assert found.read() == "Grüße"
    numbers = read(value([3, 4]))
    np.testing.assert_array_equal(numbers.elements, [3, 4])
    texts = read(value(["a", "Grüße", ""]))
    assert isinstance(texts, Texts)
    assert texts.read() == ["a", "Grüße", ""]
    assert read(value([[1], [2, 3]])) == Numbers(Kind.ARRAY, 2, None)


def nested(depth: int) -> bytes:
    inner = struct.pack("<IQI", 4, 1, 9)
    for _ in range(depth - 1):
        inner = struct.pack("<IQ", 9, 1) + inner
    return struct.pack("<I", 9) + inner


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (struct.pack("<I", 13), "the type of `k` is 13; types are 0 uint8, .* 12 float64"),
        (struct.pack("<IIQ", 9, 99, 1), "the type of the elements of `k` is 99"),
        (struct.pack("<IB", 7, 2), "a truth value of 2; it must be 0 or 1"),
        (struct.pack("<IIQ", 9, 4, 1 << 60), "the count of `k` is 1152921504606846976, for which"),
        (struct.pack("<IIQ", 9, 8, 1), "the count of `k` is 1, for which 0 bytes"),
        (struct.pack("<IQ", 8, 5) + b"abc", "the file ends within `k`"),
        (struct.pack("<IH", 4, 1), "the file ends within `k`"),
        (nested(5), "`k` has arrays 5 deep; they may be 4 deep"),
    ],
)
def test_values_that_do_not_fit_are_refused(raw: bytes, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read(raw)


def test_a_text_of_a_list_that_is_not_utf_8_is_refused() -> None:
    found = read(_texts(b"ab", b"\xff"))
    with pytest.raises(FormatError, match="a text of `k` is not UTF-8"):
        found.read()


def _texts(*raw: bytes) -> bytes:
    parts = b"".join(struct.pack("<Q", len(each)) + each for each in raw)
    return struct.pack("<IIQ", 9, 8, len(raw)) + parts


def test_arrays_within_arrays_are_read_to_their_depth() -> None:
    assert read(nested(4)).length == 1
