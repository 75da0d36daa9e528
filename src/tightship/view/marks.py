"""Writes the texts and lines of a still picture as elements of SVG."""

from html import escape

from tightship.view.text import printable


def escaped(text: str) -> str:
    """Return a text as it stands in a document, whatever characters it contains."""
    return escape(printable(text))


def words(x: float, y: float, text: str, style: str, anchor: str = "start") -> str:
    """Return a text whose `anchor` (start, middle or end) lies at a point."""
    return (
        f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">'
        f"{escaped(text)}</text>"
    )


def line(x0: float, y0: float, x1: float, y1: float, style: str) -> str:
    """Return a line between two points."""
    return f'<line class="{style}" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'
