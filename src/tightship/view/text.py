"""Fits text into columns of a terminal, whatever characters a tensor's name contains."""

import unicodedata

_GLYPHS = {"─": "-", "│": "|", "…": "~", "·": ".", "→": ">", "█": "#", "≥": ">"}
_INVISIBLE = frozenset({"Mn", "Me", "Cf"})
_UNPRINTABLE = frozenset({"Cc", "Cs", "Zl", "Zp", "Cn", "Co"})


def display_width(text: str) -> int:
    """Count the columns of a text in a terminal: 2 for a wide character, 0 for an accent."""
    return sum(_width(character) for character in text)


def printable(text: str) -> str:
    """Replace each character that could move a terminal's cursor by `?`."""
    return "".join("?" if unicodedata.category(c) in _UNPRINTABLE else c for c in text)


def shorten(text: str, width: int) -> str:
    """Cut the middle out of a text that is wider than `width` columns (at least 1).

    The ends of a tensor's name distinguish it from its neighbours better than the middle does.
    """
    assert width >= 1, width
    if display_width(text) <= width:
        return text
    tail_width = (width - 1) // 2
    head = _prefix(text, width - 1 - tail_width)
    tail = _prefix(text[::-1], tail_width)[::-1]
    return f"{head}…{tail}"


def pad(text: str, width: int, *, right: bool = False) -> str:
    """Fill a text with spaces to `width` columns; `right` aligns it to the right."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def fit_encoding(text: str, encoding: str) -> str:
    """Replace characters that `encoding` cannot represent, each by one character."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = "".join(_GLYPHS.get(character, character) for character in text)
        return plain.encode(encoding, errors="replace").decode(encoding)
    return text


def _width(character: str) -> int:
    if unicodedata.category(character) in _INVISIBLE:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _prefix(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _width(character)
        if used > width:
            return text[:index]
    return text
