"""Pieces of answers."""

import pytest

from tightship.errors import InputError
from tightship.text.streamed import STOPS_MAX, TextStream


def pieces(raw: list[bytes], *stops: str) -> list[str]:
    stream = TextStream(stops)
    return [*(stream.add(each) for each in raw), stream.end()]


def test_a_piece_ends_with_a_whole_character() -> None:
    raw = "é\U0001f600!".encode()
    found = pieces([raw[n : n + 1] for n in range(len(raw))])
    assert found == ["", "é", "", "", "", "\U0001f600", "!", ""]


def test_bytes_that_are_no_character_are_replaced() -> None:
    assert pieces([b"a\xff", b"b\xf0\x9f"]) == ["a\ufffd", "b", "\ufffd"]


def test_a_stop_text_ends_the_answer_wherever_it_is_cut() -> None:
    for size in range(1, 8):
        text = b"one END two"
        raw = [text[n : n + size] for n in range(0, len(text), size)]
        assert "".join(pieces(raw, "END", "nothing")) == "one "


def test_the_first_of_several_counts() -> None:
    stream = TextStream(("cd", "bc"))
    assert (stream.add(b"abcd"), stream.is_stopped) == ("a", True)
    assert (stream.add(b"x"), stream.end()) == ("", "")


def test_what_began_like_a_stop_text_comes_once_it_is_none() -> None:
    assert pieces([b"1\n", b"\n", b"x", b"\n"], "\n\n\n") == ["1", "", "\n\nx", "", "\n"]


def test_stop_texts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="none of them empty"):
        TextStream(("",))
    with pytest.raises(InputError, match="There are 17 stop texts; give at most 16"):
        TextStream(("a",) * (STOPS_MAX + 1))
