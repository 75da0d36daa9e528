"""Lays out plain-text tables that fit a terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from tightship.view.text import display_width, pad, printable, shorten

WIDTH_MAX = 100
_GUTTER = "  "
_FLEXIBLE_WIDTH_MIN = 8


@dataclass(frozen=True, slots=True)
class Column:
    """The title of a column and the alignment of its cells.

    A `number` is aligned to the right and never cut; a text may lose its middle.
    """

    title: str
    number: bool = False


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 0
) -> list[str]:
    """Lay out rows under their titles, in at most `WIDTH_MAX` columns of a terminal.

    If the rows are too wide, text columns become narrower, the widest first.

    Args:
        columns: n columns; numbers and titles must leave room for the texts.
        rows: Each n cells.
        indent: Spaces before every line.

    Returns:
        Lines without trailing spaces: the titles, a rule, the rows.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    titles = [column.title for column in columns]
    widths = [
        max(map(display_width, column), default=0) for column in zip(titles, *cells, strict=True)
    ]
    space = WIDTH_MAX - indent - len(_GUTTER) * (len(columns) - 1)
    _narrow(widths, [i for i, column in enumerate(columns) if not column.number], space)
    rule = ["─" * width for width in widths]
    return [" " * indent + _line(columns, row, widths) for row in (titles, rule, *cells)]


def _narrow(widths: list[int], flexible: Sequence[int], space: int) -> None:
    while sum(widths) > space:
        widest = max(flexible, key=lambda i: widths[i])
        assert widths[widest] > _FLEXIBLE_WIDTH_MIN, "the numbers alone are too wide"
        widths[widest] -= 1


def _line(columns: Sequence[Column], cells: Sequence[str], widths: Sequence[int]) -> str:
    shown = (
        pad(shorten(cell, width), width, right=column.number)
        for column, cell, width in zip(columns, cells, widths, strict=True)
    )
    return _GUTTER.join(shown).rstrip()
