import pytest

from tightship.difference.described import described_bytes, shape_and_type


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1x64 float32", 256),
        ("scalar int64", 8),
        ("3 bool", 3),
        ("5 int4", 3),
        ("2 float8_e4m3fn", 2),
        ("2 complex64", 16),
        ("0x4 float32", 0),
        ("dynamic", 0),
        ("", 0),
    ],
)
def test_bytes_of_a_description(text, size):
    assert described_bytes(text) == size


def test_other_texts_have_no_shape():
    assert shape_and_type("dynamic") == ("", "")
    assert shape_and_type("1x2 bfloat16") == ("1x2", "bfloat16")
