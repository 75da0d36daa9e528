import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.view.text import display_width, fit_encoding, pad, printable, shorten


@given(st.text(), st.integers(1, 60))
def test_shortened_text_is_at_most_as_wide_as_asked(text, width):
    assert display_width(shorten(text, width)) <= width


@given(st.text(max_size=40))
def test_text_that_fits_is_left_alone(text):
    assert shorten(text, max(1, display_width(text))) == text


def test_a_long_name_keeps_both_ends():
    short = shorten("backbone/stage3/block2/conv1/weights", 15)
    assert short == "backbon…weights"


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("中文", 4), ("e\u0301", 1), ("", 0)])
def test_display_width_counts_terminal_columns(text, width):
    assert display_width(text) == width


@given(st.text())
def test_printable_text_moves_no_cursor(text):
    assert not set(printable(text)) & {"\n", "\r", "\t", "\x1b", "\x9b", "\u2028"}
    assert len(printable(text)) == len(text)


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.booleans())
def test_padding_fills_to_the_width(text, right):
    padded = pad(text, display_width(text) + 3, right=right)
    assert display_width(padded) == display_width(text) + 3
    assert padded.strip(" ") == text.strip(" ")


@given(st.text(st.characters(codec="utf-8")), st.sampled_from(["ascii", "latin-1", "cp437"]))
def test_text_fits_any_encoding_character_by_character(text, encoding):
    fitted = fit_encoding(text, encoding)
    fitted.encode(encoding)
    assert len(fitted) == len(text)


def test_rules_and_ellipses_have_ascii_forms():
    assert fit_encoding("── a…b ≥", "ascii") == "-- a~b >"
    assert fit_encoding("── a…b", "utf-8") == "── a…b"
