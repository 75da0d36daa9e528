import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.errors import InputError
from tightship.quantity import LIMIT_BYTES_MAX, format_bytes, format_limit, parse_bytes

SIZES = st.one_of(
    st.integers(1, LIMIT_BYTES_MAX),
    st.integers(0, 56).map(lambda power: 2**power),
    st.integers(1, 56).map(lambda power: 2**power - 1),
)


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("1048576", 1 << 20),
        ("64MiB", 64 << 20),
        ("512M", 512 << 20),
        ("0.5GiB", 512 << 20),
        (".5k", 512),
        ("2GB", 2_000_000_000),
        (" 1 tib ", 1 << 40),
        ("7B", 7),
        ("64PiB", LIMIT_BYTES_MAX),
        (4096, 4096),
    ],
)
def test_amounts_are_read_in_the_unit_that_is_written(text, size_bytes):
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12 apples",
        "nan",
        "NaN",
        "inf",
        "-1",
        "-5MiB",
        "1e9",
        "0x10",
        "MiB",
        "1.2.3",
        "1,5M",
        "١٢",
    ],
)
def test_what_is_no_amount_is_refused_by_name(text):
    with pytest.raises(InputError, match="not an amount of memory") as caught:
        parse_bytes(text)
    assert f"`{text}`" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["1 2", "64 MiBs", "1_000", "9" * 5000, "1" * 41, "\ud800"], ids=range(6)
)
def test_what_only_looks_like_an_amount_is_refused(text):
    with pytest.raises(InputError, match="not an amount of memory") as caught:
        parse_bytes(text)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize("quantity", [0, -1, "0", "0.0GiB", "0.3", "0.0001k"])
def test_less_than_a_byte_is_refused(quantity):
    with pytest.raises(InputError, match="less than a byte"):
        parse_bytes(quantity)


@pytest.mark.parametrize(
    "quantity", ["65PiB", "99999999999999999999P", 2**56 + 1, 2**20_000], ids=range(4)
)
def test_more_than_an_address_space_is_refused(quantity):
    with pytest.raises(InputError, match="check the unit") as caught:
        parse_bytes(quantity)
    assert len(str(caught.value)) < 250


@given(SIZES)
def test_a_printed_limit_holds_what_it_was_printed_for(size_bytes):
    limit_bytes = min(parse_bytes(format_limit(size_bytes)), LIMIT_BYTES_MAX)
    assert size_bytes <= limit_bytes <= size_bytes * 1.011 + 1


@given(SIZES)
def test_a_printed_amount_is_within_half_a_percent(size_bytes):
    assert parse_bytes(format_bytes(size_bytes)) == pytest.approx(size_bytes, rel=0.0051, abs=1)


@given(SIZES)
def test_a_printed_amount_is_short(size_bytes):
    number, unit = format_bytes(size_bytes).split()
    assert len(number) <= 6
    assert float(number) < 1024
    assert unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


@given(SIZES, SIZES)
def test_more_bytes_never_print_as_less(a, b):
    low, high = sorted((a, b))
    assert parse_bytes(format_bytes(low)) <= parse_bytes(format_bytes(high))


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1024**2 - 1, "1.00 MiB")],
)
def test_amounts_are_written_in_binary_units(size_bytes, text):
    assert format_bytes(size_bytes) == text
