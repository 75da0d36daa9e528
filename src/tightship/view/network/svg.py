"""Draws a network as a still picture: nodes in the colours of the bytes that their values hold."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from tightship.quantity import format_bytes
from tightship.view.marks import escaped, words
from tightship.view.network.bands import bands_of, shares_of
from tightship.view.network.levels import Box, Level
from tightship.view.network.moments import Moment, moment_at, pending
from tightship.view.network.network import Network, Value
from tightship.view.text import printable, shorten

_MARGIN, _TOP, _BAR, _WIDTH_MIN = 24.0, 118.0, 22.0, 640.0
_LABEL, _SMALL = 7.4, 7.0
"""Width of a character of a label, and of a smaller one."""
_BOXES_SHOWN = 4

Place = tuple[float, float, float, float]
"""Left, top, width and height."""

STYLE = """
.tn-card{fill:#fff}.tn-ink{fill:#1c2024}.tn-soft{fill:#62686f}.tn-on{fill:#fff}
.tn-edge{fill:none;stroke:#9aa4b2;stroke-width:1.1}.tn-head{fill:#77808c}
.tn-loose{stroke-opacity:.4}
.tn-place{stroke:#1c2024;stroke-width:2.4}
.tn-frame{fill:none;stroke:#1c2024;stroke-opacity:.35}.tn-outside{fill:#f4f5f6;stroke:#9aa4b2}
.tn-outside,.tn-free,.tn-later{stroke-dasharray:4 3}.tn-free{fill:none;stroke:#62686f}
.tn-later{fill:#fff;stroke:#9aa4b2}.tn-now{fill:none;stroke:#c2410c;stroke-width:3}
.tn-past{opacity:.3}.tn-badge{fill:#1c2024}.tn-zero{fill:#c2410c}
.tn-b0{fill:#3f6fa8}.tn-b1{fill:#b5603a}.tn-b2{fill:#3b8a7f}.tn-b3{fill:#a8567e}
.tn-b4{fill:#8a7a2e}.tn-b5{fill:#6f63ab}.tn-b6{fill:#5b8a3c}.tn-b7{fill:#a04545}
.tn-b8{fill:#2f7fa0}.tn-b9{fill:#8d6a4f}.tn-b10{fill:#5f6b7a}.tn-b11{fill:#9a4fa8}
@media(prefers-color-scheme:dark){
.tn-card{fill:#1a1e22}.tn-ink{fill:#e8eaed}.tn-soft{fill:#9aa2ab}.tn-on{fill:#0e1114}
.tn-edge{stroke:#6b7683}.tn-head{fill:#8a94a0}.tn-place{stroke:#e8eaed}.tn-frame{stroke:#e8eaed}
.tn-outside{fill:#14171a;stroke:#6b7683}.tn-free{stroke:#9aa2ab}
.tn-later{fill:#1a1e22;stroke:#6b7683}.tn-now{stroke:#fb923c}.tn-badge{fill:#e8eaed}
.tn-zero{fill:#fb923c}
.tn-b0{fill:#7aa5d8}.tn-b1{fill:#e0936e}.tn-b2{fill:#63c0b3}.tn-b3{fill:#d68bb0}
.tn-b4{fill:#c9b65c}.tn-b5{fill:#a59ade}.tn-b6{fill:#97c473}.tn-b7{fill:#dd8585}
.tn-b8{fill:#6bb8d6}.tn-b9{fill:#c4a184}.tn-b10{fill:#9aa8b8}.tn-b11{fill:#cd8fda}}
"""


ARROW = (
    '<defs><marker id="tn-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
    'markerHeight="7" markerUnits="userSpaceOnUse" orient="auto">'
    '<path class="tn-head" d="M0 1L8 4L0 7z"/></marker></defs>'
)


def network_svg(network: Network, levels: Sequence[Level], step: int | None = None) -> str:
    """Draw the first level of a network as an SVG, readable on light and on dark pages.

    Args:
        network: The network.
        levels: Its levels; blocks stay closed.
        step: Step whose state is drawn, with the readers that each value still waits for and the
            memory that is free; None draws the whole plan.
    """
    drawing = _Drawing(network, levels[0], None if step is None else moment_at(network, step))
    width = max(_WIDTH_MIN, levels[0].layout.width + 2 * _MARGIN)
    height = levels[0].layout.height + _TOP + _MARGIN + 20
    label = f"Network of {network.picture.title}, coloured by the bytes of its values"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="100%" role="img" aria-label="{escaped(label)}" '
        'font-family="system-ui,sans-serif" font-size="12">',
        f"<style>{STYLE}</style>",
        ARROW,
        f'<rect class="tn-card" width="{width:.0f}" height="{height:.0f}" rx="8"/>',
        *drawing.heading(width),
        f'<g transform="translate({_MARGIN},{_TOP})">',
        *drawing.edges(),
        *drawing.boxes(),
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


class _Drawing:
    def __init__(self, network: Network, level: Level, moment: Moment | None) -> None:
        self.network, self.level, self.moment = network, level, moment
        self.bands = bands_of(network.values, network.picture.arena_bytes)
        self.live = frozenset(moment.live if moment else ())

    def heading(self, width: float) -> Iterator[str]:
        """Yield title, and the arena with a colour for each of its bands."""
        picture = self.network.picture
        size = format_bytes(picture.arena_bytes)
        title = escaped(shorten(printable(picture.title), 60))
        yield (
            f'<text x="{_MARGIN}" y="30" font-size="15"><tspan class="tn-ink" font-weight="600">'
            f'{title}</tspan><tspan class="tn-soft" dx="10">arena {size}; the same colour is '
            "the same bytes</tspan></text>"
        )
        scale = (width - 2 * _MARGIN) / max(1, picture.arena_bytes)
        for band, (low, high) in enumerate(pairwise(self.bands)):
            x, wide = _MARGIN + low * scale, (high - low) * scale
            hint = f"<title>{format_bytes(high - low)} at {low:,}</title>"
            opacity = ' opacity=".25"' if self.moment else ""
            yield _rect(f"tn-b{band}", ((x, 44, wide, _BAR)), opacity, hint)
            if wide > 60:
                yield words(x, 44 + _BAR + 14, format_bytes(low), "tn-soft")
        if self.moment is not None:
            yield from self._moment(self.moment, scale)

    def _moment(self, moment: Moment, scale: float) -> Iterator[str]:
        """Yield what the arena holds at the step, and its free boxes."""
        for value in map(self.network.values.__getitem__, moment.live):
            x = _MARGIN + value.offset_bytes * scale
            for band, share in shares_of(value, self.bands):
                wide = share * value.size_bytes * scale
                yield _rect(f"tn-b{band}", (x, 44, wide, _BAR))
                x += wide
        for box in moment.free:
            place = _MARGIN + box.offset_bytes * scale
            yield _rect("tn-free", (place, 45, box.size_bytes * scale, _BAR - 2))
        running = self.network.steps[moment.step]
        free = ", ".join(
            f"{format_bytes(box.size_bytes)} at {box.offset_bytes:,}"
            for box in moment.free[:_BOXES_SHOWN]
        )
        more = len(moment.free) - _BOXES_SHOWN
        free += f" and {more:,} more" if more > 0 else ""
        text = f"step {moment.step:,}, {running.operator}; free boxes: {free or 'none'}"
        yield words(_MARGIN, 98, shorten(printable(text), 110), "tn-ink")

    def edges(self) -> Iterator[str]:
        """Yield a curve for each edge; a value that takes over bytes has a thick one."""
        for (a, b, values), route, is_loose in zip(
            self.level.edges, self.level.layout.routes, self.level.layout.loose, strict=True
        ):
            kind = "tn-edge tn-loose" if is_loose else "tn-edge"
            if self._takes_over(b, values):
                kind = "tn-edge tn-place"
            names = ", ".join(self.network.values[value].name for value in values[:4])
            hint = escaped(f"{names}: {self.level.boxes[a].label} → {self.level.boxes[b].label}")
            yield (
                f'<path class="{kind}" marker-end="url(#tn-arrow)" d="{curve(route)}">'
                f"<title>{hint}</title></path>"
            )

    def _takes_over(self, box: int, values: Sequence[int]) -> bool:
        taken = {
            self.network.values[value].shares_with
            for value in self.level.boxes[box].values
            if self.level.boxes[box].node >= 0
        }
        return any(self.network.values[value].name in taken for value in values)

    def boxes(self) -> Iterator[str]:
        """Yield each box with the colours of its value."""
        for box, place in zip(self.level.boxes, self.level.layout.boxes, strict=True):
            drawn = self._box(box, place)
            yield f'<g class="tn-past">{drawn}</g>' if self._is_past(box) else drawn

    def _is_past(self, box: Box) -> bool:
        """Whether no value of a box holds its bytes any more."""
        if self.moment is None or not box.steps or self._is_later(box):
            return False
        planned = [v for v in box.values if self.network.values[v].is_planned]
        return bool(planned) and self.live.isdisjoint(planned) and self._is_over(box)

    def _is_over(self, box: Box) -> bool:
        return self.moment is not None and max(box.steps) < self.moment.step

    def _is_later(self, box: Box) -> bool:
        return self.moment is not None and bool(box.steps) and min(box.steps) > self.moment.step

    def _box(self, box: Box, place: Place) -> str:
        x, y, width, height = place
        values = [self.network.values[value] for value in box.values]
        shares = self._shares(box, values)
        hint = f"<title>{hint_of(box, values)}</title>"
        if self._is_later(box):
            parts, style = [_rect("tn-later", place, ' rx="5"', hint)], "tn-soft"
        elif not shares:
            parts, style = [_rect("tn-outside", place, ' rx="5"', hint)], "tn-ink"
        else:
            parts, style, at = [], "tn-on", x
            total = sum(share for _, share in shares)
            for band, share in shares:
                wide = width * share / total
                parts.append(_rect(f"tn-b{band}", (at, y, wide, height)))
                at += wide
            parts.append(_rect("tn-frame", place, ' pointer-events="all"', hint))
        is_now = self.moment is not None and self.moment.step in box.steps
        if is_now:
            parts.append(_rect("tn-now", (x - 3, y - 3, width + 6, height + 6), ' rx="7"'))
        parts += _texts(box, place, style)
        parts += self._counter(box, values, x + width, y)
        return "".join(parts)

    def _shares(self, box: Box, values: Sequence[Value]) -> list[tuple[int, float]]:
        """Return the bands of a node's largest value, or of all bytes that a block holds."""
        if box.level < 0:
            return shares_of(values[0], self.bands) if values else []
        sums: dict[int, float] = {}
        for index, value in zip(box.values, values, strict=True):
            if self.moment is None or index in self.live:
                for band, share in shares_of(value, self.bands):
                    sums[band] = max(sums.get(band, 0.0), share * value.size_bytes)
        return sorted(sums.items())

    def _counter(self, box: Box, values: Sequence[Value], x: float, y: float) -> list[str]:
        """Return the number of readers that the value of a node still waits for."""
        if self.moment is None or box.level >= 0 or not values or self._is_later(box):
            return []
        count = pending(values[0], self.moment.step)
        if box.is_port or not (count or box.values[0] in self.moment.released):
            return []
        style = "tn-badge" if count else "tn-zero"
        return [
            f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="8.5"/>',
            words(x, y + 4, f"{count}", "tn-on", "middle"),
        ]


def curve(route: Sequence[tuple[float, float]]) -> str:
    """Return the data of an SVG path from the points of cubic curves."""
    places = [f"{x:.1f} {y:.1f}" for x, y in route]
    return f"M{places[0]}" + "".join(
        f"C{' '.join(places[index : index + 3])}" for index in range(1, len(places), 3)
    )


def hint_of(box: Box, values: Sequence[Value]) -> str:
    """Name a box's tensors with bytes and offsets, a few of them, escaped."""
    lines = [box.label if box.level < 0 else f"{box.label}: {len(box.steps):,} steps"]
    for value in values[:4]:
        place = f" at {value.offset_bytes:,}" if value.is_planned else ", outside the arena"
        size = f" {format_bytes(value.size_bytes)}" if value.size_bytes else ""
        lines.append(f"{value.name}{size}{place}")
    return "\n".join(map(escaped, lines))


def _texts(box: Box, place: Place, style: str) -> list[str]:
    x, y, width, height = place
    middle, small = x + width / 2, f'{style}" font-size="10.5" pointer-events="none'
    label = shorten(printable(box.label) or "?", max(4, int((width - 8) / _LABEL)))
    name = box.detail if box.level >= 0 else box.detail.rpartition("/")[2]
    second = shorten(printable(name), max(4, int((width - 8) / _SMALL)))
    first = f'{style}" font-weight="600" pointer-events="none'
    if box.is_port or not box.detail:
        return [words(middle, y + height / 2 + 4, label, small, "middle")]
    return [
        words(middle, y + height / 2 - 2, label, first, "middle"),
        words(middle, y + height / 2 + 12, second, small, "middle"),
    ]


def _rect(style: str, place: Place, more: str = "", inner: str = "") -> str:
    x, y, width, height = place
    size = f'width="{width:.1f}" height="{height:.1f}"'
    end = f">{inner}</rect>" if inner else "/>"
    return f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" {size}{more}{end}'
