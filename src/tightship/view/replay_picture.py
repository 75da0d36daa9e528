"""Draws the bytes that memory resources held during a replay: a panel for each, on one scale."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from tightship.quantity import format_bytes
from tightship.view.marks import words
from tightship.view.scale import byte_ticks, step_ticks
from tightship.view.text import printable, shorten

WIDTH = 960
_PANEL_WIDTH, _PANEL_HEIGHT = 404, 150
_COLUMNS_X = (66, 66 + _PANEL_WIDTH + 76)
_TOP, _ROW_HEIGHT = 74, _PANEL_HEIGHT + 66
_SCALE_MAX = 3
"""The scale ends at this multiple of the peak live bytes; larger values are written as text."""

STYLE = """
.tr-card{fill:#fff}.tr-ink{fill:#1c2024}.tr-soft{fill:#62686f}.tr-grid{stroke:#e6e8eb}
.tr-live{fill:#b9c2cc}.tr-held{fill:#3f6fa8;fill-opacity:.28;stroke:#3f6fa8;stroke-width:1.3}
.tr-over{fill:#c2410c}
@media(prefers-color-scheme:dark){
.tr-card{fill:#1a1e22}.tr-ink{fill:#e8eaed}.tr-soft{fill:#9aa2ab}.tr-grid{stroke:#2b3137}
.tr-live{fill:#5b6570}.tr-held{fill:#7aa5d8;fill-opacity:.28;stroke:#7aa5d8}
.tr-over{fill:#fb923c}}
"""


@dataclass(frozen=True, slots=True)
class Panel:
    """One resource: the largest live and held bytes in each part of the trace."""

    name: str
    live_bytes: Sequence[int]
    held_bytes: Sequence[int]
    ns_per_operation: float
    refused_count: int


@dataclass(frozen=True, slots=True)
class ReplayPicture:
    """A trace of `event_count` events, with a panel for each resource."""

    title: str
    event_count: int
    panels: tuple[Panel, ...]

    @property
    def peak_live_bytes(self) -> int:
        """Largest live bytes of any panel."""
        return max((max(panel.live_bytes, default=0) for panel in self.panels), default=0)

    @property
    def top_bytes(self) -> int:
        """Upper end of the scale: above all held bytes, unless these far exceed the live bytes."""
        held = max((max(panel.held_bytes, default=0) for panel in self.panels), default=0)
        return max(1, min(held, _SCALE_MAX * max(1, self.peak_live_bytes)) * 21 // 20)


def replay_svg(picture: ReplayPicture) -> str:
    """Draw the picture as SVG that is readable on light and on dark pages."""
    rows = -(-len(picture.panels) // len(_COLUMNS_X))
    height = _TOP + rows * _ROW_HEIGHT + 12
    label = f"What memory resources held while {picture.title} was replayed"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" '
        f'role="img" aria-label="{escape(printable(label))}" '
        'font-family="system-ui,sans-serif" font-size="12">',
        f"<style>{STYLE}</style>",
        f'<rect class="tr-card" width="{WIDTH}" height="{height}" rx="8"/>',
        *_heading(picture),
    ]
    for index, panel in enumerate(picture.panels):
        row, column = divmod(index, len(_COLUMNS_X))
        parts += _panel(picture, panel, _COLUMNS_X[column], _TOP + row * _ROW_HEIGHT + 22)
    return "\n".join([*parts, "</svg>"])


def _heading(picture: ReplayPicture) -> Iterator[str]:
    left = _COLUMNS_X[0]
    title = escape(shorten(printable(picture.title), 60))
    peak = f"{picture.event_count:,} operations, at most {format_bytes(picture.peak_live_bytes)}"
    yield (
        f'<text x="{left}" y="28" font-size="15"><tspan class="tr-ink" font-weight="600">{title}'
        f'</tspan><tspan class="tr-soft" dx="10">{peak} live</tspan></text>'
    )
    for x, style, what in ((left, "tr-live", "live"), (left + 56, "tr-held", "held beside it")):
        yield f'<rect class="{style}" x="{x}" y="42" width="10" height="10" rx="2"/>'
        yield words(x + 15, 51, what, "tr-soft")
    yield words(left + 180, 51, "over the operations of the trace", "tr-soft")


def _panel(picture: ReplayPicture, panel: Panel, left: float, top: float) -> Iterator[str]:
    bottom = top + _PANEL_HEIGHT

    def y(size_bytes: float) -> float:
        return bottom - min(1.0, size_bytes / picture.top_bytes) * _PANEL_HEIGHT

    for size_bytes, label in byte_ticks(picture.top_bytes, 4):
        at = y(size_bytes)
        yield (
            f'<line class="tr-grid" x1="{left}" y1="{at:.1f}" x2="{left + _PANEL_WIDTH}" '
            f'y2="{at:.1f}"/>'
        )
        yield words(left - 8, at + 4, label, "tr-soft", "end")
    for event in step_ticks(max(1, picture.event_count), 4):
        x = left + event / max(1, picture.event_count) * _PANEL_WIDTH
        # A centred last label would extend beyond the picture.
        anchor = "end" if event == picture.event_count else "middle"
        yield words(x, bottom + 16, f"{event:,}", "tr-soft", anchor)
    live = [y(size_bytes) for size_bytes in panel.live_bytes]
    held = [y(size_bytes) for size_bytes in panel.held_bytes]
    if live:
        yield f'<path class="tr-held" d="{_area(held, live, left)}"/>'
        yield f'<path class="tr-live" d="{_area(live, [bottom] * len(live), left)}"/>'
    yield from _facts(picture, panel, left, top)


def _facts(picture: ReplayPicture, panel: Panel, left: float, top: float) -> Iterator[str]:
    held_bytes = max(panel.held_bytes, default=0)
    facts = f"{format_bytes(held_bytes)} held"
    if picture.peak_live_bytes:
        facts += f", {held_bytes / picture.peak_live_bytes:.2f}x"
    facts += f", {panel.ns_per_operation:.0f} ns/operation"
    if panel.refused_count:
        facts += f", {panel.refused_count:,} refused"
    name = escape(shorten(printable(panel.name), 26))
    yield (
        f'<text x="{left}" y="{top - 8}"><tspan class="tr-ink" font-weight="600">{name}</tspan>'
        f'<tspan class="tr-soft" dx="8">{facts}</tspan></text>'
    )
    if held_bytes > picture.top_bytes:
        above = f"above: up to {format_bytes(held_bytes)}"
        yield words(left + _PANEL_WIDTH - 4, top + 14, above, "tr-over", "end")


def _area(upper: Sequence[float], lower: Sequence[float], left: float) -> str:
    """Return a path along `upper` and back along `lower`."""
    width = _PANEL_WIDTH / len(upper)
    forth = [f"H{left + index * width:.1f}V{y:.1f}" for index, y in enumerate(upper)]
    back = [f"V{y:.1f}H{left + index * width:.1f}" for index, y in reversed(list(enumerate(lower)))]
    return f"M{left:.1f} {lower[0]:.1f}{''.join(forth)}H{left + _PANEL_WIDTH:.1f}{''.join(back)}Z"
