"""Draws the peak memory of a decoder's sessions by context: a line for each number of sessions."""

from collections.abc import Iterator
from dataclasses import dataclass

from tightship.quantity import format_bytes
from tightship.view.marks import escaped, line, words
from tightship.view.scale import byte_ticks
from tightship.view.session_picture import SessionPicture
from tightship.view.text import printable, shorten

WIDTH = 960
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 704, 64, 396
_KEY, _KEY_ROW = _RIGHT + 28, 19
"""Left end and height of the rows of the key, which stands to the right."""
_LIMIT_MAX = 3
"""A limit above this multiple of the largest peak is written as text."""
_COLOURS = 8

STYLE = """
.tc-card{fill:#fff}.tc-ink{fill:#1c2024}.tc-soft{fill:#62686f}.tc-grid{stroke:#e6e8eb}
.tc-limit{stroke:#c2410c;stroke-width:1.4;stroke-dasharray:6 4}.tc-limit-text{fill:#c2410c}
.tc-part-0{fill:#8d97a2}.tc-part-1{fill:#adb5be}.tc-part-2{fill:#c9cfd5}.tc-part-3{fill:#dfe3e7}
.tc-peak{fill:none;stroke-width:1.8;stroke-linejoin:round}.tc-drop{stroke-dasharray:2 3}
.tc-most{stroke-width:2;fill:#fff}.tc-point{fill:none;stroke-width:3}
.tc-0{stroke:#3f6fa8}.tc-1{stroke:#3b9a8f}.tc-2{stroke:#b5813a}.tc-3{stroke:#a8567e}
.tc-4{stroke:#6f63ab}.tc-5{stroke:#6d8f3c}.tc-6{stroke:#4b5563}.tc-7{stroke:#a87f66}
@media(prefers-color-scheme:dark){
.tc-card{fill:#1a1e22}.tc-ink{fill:#e8eaed}.tc-soft{fill:#9aa2ab}.tc-grid{stroke:#2b3137}
.tc-limit{stroke:#fb923c}.tc-limit-text{fill:#fb923c}.tc-most{fill:#1a1e22}
.tc-part-0{fill:#6b7580}.tc-part-1{fill:#56606a}.tc-part-2{fill:#434c55}.tc-part-3{fill:#343c44}
.tc-0{stroke:#7aa5d8}.tc-1{stroke:#63c0b3}.tc-2{stroke:#dcae6b}.tc-3{stroke:#d68bb0}
.tc-4{stroke:#a59ade}.tc-5{stroke:#a5c46f}.tc-6{stroke:#c3cad2}.tc-7{stroke:#d0b09c}}
"""


@dataclass(frozen=True, slots=True)
class _Scale:
    tokens: int
    top_bytes: int

    def x(self, tokens: float) -> float:
        return _LEFT + tokens / self.tokens * (_RIGHT - _LEFT)

    def y(self, size_bytes: float) -> float:
        return _BOTTOM - size_bytes / self.top_bytes * (_BOTTOM - _TOP)

    def path(self, points: list[tuple[int, int]]) -> str:
        return " ".join(f"{self.x(tokens):.2f},{self.y(size):.2f}" for tokens, size in points)


def session_svg(picture: SessionPicture) -> str:
    """Draw the peaks as an SVG of tokens and bytes, readable on light and on dark pages."""
    peak = max(bytes_ for each in picture.sessions for _, bytes_ in picture.points(each))
    limit = picture.limit_bytes or 0
    shown = limit if limit <= _LIMIT_MAX * peak else 0
    scale = _Scale(picture.contexts[-1].context, max(peak, shown) * 21 // 20 + 1)
    height = max(_BOTTOM + 64, _TOP + len(picture.sessions) * 2 * _KEY_ROW + 170)
    label = f"Peak memory of sessions of {picture.title}, by context"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="100%" '
        f'role="img" aria-label="{escaped(label)}" '
        'font-family="system-ui,sans-serif" font-size="12">',
        f"<style>{STYLE}</style>",
        f'<rect class="tc-card" width="{WIDTH}" height="{height}" rx="8"/>',
        f'<text x="{_LEFT}" y="28" font-size="15"><tspan class="tc-ink" font-weight="600">'
        f"{escaped(shorten(printable(picture.title), 50))}</tspan>"
        '<tspan class="tc-soft" dx="10">peak memory of sessions</tspan></text>',
        *_axes(scale),
        *_foot(picture, scale),
        *_lines(picture, scale),
        *_limit(picture, scale),
        *_key(picture, float(_TOP)),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(scale: _Scale) -> Iterator[str]:
    yield words(_LEFT, _TOP - 8, "peak memory (bytes)", "tc-soft")
    for size_bytes, label in byte_ticks(scale.top_bytes, 6):
        y = scale.y(size_bytes)
        yield line(_LEFT, y, _RIGHT, y, "tc-grid")
        yield words(_LEFT - 8, y + 4, label, "tc-soft", "end")
    step = 1 << max(0, (scale.tokens - 1).bit_length() - 3)  # contexts are powers of two mostly
    for tokens in range(0, scale.tokens + 1, step):
        x = scale.x(tokens)
        yield line(x, _BOTTOM, x, _BOTTOM + 4, "tc-grid")
        yield words(x, _BOTTOM + 17, f"{tokens:,}", "tc-soft", "middle")
    yield words(_RIGHT, _BOTTOM + 38, "context (tokens of each session)", "tc-soft", "end")


def _foot(picture: SessionPicture, scale: _Scale) -> Iterator[str]:
    """Draw what does not grow with sessions as bands, the first part at the bottom."""
    contexts = [0, *(each.context for each in picture.contexts)]
    below = [0] * len(contexts)
    for index, name in enumerate(picture.contexts[0].parts):
        sizes = [each.parts[name] for each in (picture.contexts[0], *picture.contexts)]
        above = [low + size for low, size in zip(below, sizes, strict=True)]
        forth = list(zip(contexts, above, strict=True))
        back = list(zip(contexts, below, strict=True))[::-1]
        yield f'<polygon class="tc-part-{index % 4}" points="{scale.path(forth + back)}"/>'
        below = above


def _lines(picture: SessionPicture, scale: _Scale) -> Iterator[str]:
    for index, sessions in enumerate(picture.sessions):
        colour = f"tc-{index % _COLOURS}"
        points = picture.points(sessions)
        hint = _noun(sessions)
        yield (
            f'<polyline class="tc-peak {colour}" points="{scale.path(points)}">'
            f"<title>{hint}</title></polyline>"
        )
        most = picture.largest.get(sessions)
        for tokens, peak in points[1:]:
            x, y = scale.x(tokens), scale.y(peak)
            if tokens == most:
                yield line(x, y, x, _BOTTOM, f"tc-drop {colour}")
            elif tokens not in picture.asked:
                continue
            kind, radius = ("most", 4.5) if tokens == most else ("point", 1.6)
            yield (
                f'<circle class="tc-{kind} {colour}" cx="{x:.2f}" cy="{y:.2f}" r="{radius}">'
                f"<title>{hint} of {tokens:,} tokens: {format_bytes(peak)}</title></circle>"
            )


def _limit(picture: SessionPicture, scale: _Scale) -> Iterator[str]:
    if picture.limit_bytes is None:
        return
    is_above = picture.limit_bytes > scale.top_bytes
    text = f"limit {format_bytes(picture.limit_bytes)}{', above this' if is_above else ''}"
    yield line(_KEY, _TOP - 24, _KEY + 14, _TOP - 24, "tc-limit")
    yield words(_KEY + 22, _TOP - 20, text, "tc-limit-text")
    if not is_above:
        y = scale.y(picture.limit_bytes)
        yield line(_LEFT, y, _RIGHT, y, "tc-limit")


def _key(picture: SessionPicture, y: float) -> Iterator[str]:
    """Name the lines from the highest down, then the bands."""
    last = picture.contexts[-1]
    for index, sessions in reversed(list(enumerate(picture.sessions))):
        yield line(_KEY, y, _KEY + 14, y, f"tc-peak tc-{index % _COLOURS}")
        yield words(_KEY + 22, y + 4, _noun(sessions), "tc-ink")
        tokens, peak = picture.points(sessions)[-1]
        fact = f"{format_bytes(peak)} at {tokens:,} tokens"
        if sessions in picture.largest:
            most = picture.largest[sessions]
            fact = f"context up to {most:,} tokens" if most else "no context fits"
        yield words(_KEY + 22, y + 4 + _KEY_ROW - 4, fact, "tc-soft")
        y += 2 * _KEY_ROW
    yield words(_KEY, y + 14, f"for all sessions, at {last.context:,}:", "tc-soft")
    for index, (name, size) in reversed(list(enumerate(last.parts.items()))):
        y += _KEY_ROW
        band = f'class="tc-part-{index % 4}" x="{_KEY}" y="{y + 6:.1f}"'
        yield f'<rect {band} width="14" height="10"/>'
        yield words(_KEY + 22, y + 15, f"{name} {format_bytes(size)}", "tc-soft")


def _noun(sessions: int) -> str:
    return f"{sessions:,} session{'s' if sessions > 1 else ''}"
