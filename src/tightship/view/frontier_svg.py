"""Draws a frontier: operations against bytes, a step for each plan."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log2

from tightship.quantity import format_bytes
from tightship.view.marks import escaped, line, words
from tightship.view.scale import byte_ticks
from tightship.view.text import printable, shorten

WIDTH, HEIGHT = 960, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 924, 72, 412
_SHARES = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_FINE = 0.02
"""Share of operations up to which the axis is linear; beyond, it is logarithmic."""

STYLE = """
.tf-card{fill:#fff}.tf-ink{fill:#1c2024}.tf-soft{fill:#62686f}.tf-grid{stroke:#e6e8eb}
.tf-bound{stroke:#8d97a2;stroke-width:1.2;stroke-dasharray:2 3}
.tf-limit{stroke:#c2410c;stroke-width:1.4;stroke-dasharray:6 4}.tf-limit-text{fill:#c2410c}
.tf-line{fill:none;stroke:#3f6fa8;stroke-width:1.8;stroke-linejoin:round}
.tf-area{fill:#3f6fa8;fill-opacity:.08}
.tf-point{fill:#3f6fa8;stroke:#fff;stroke-width:1.2}.tf-point:hover{fill:#c2410c}
.tf-chosen{fill:#c2410c;stroke:#fff;stroke-width:1.6}
@media(prefers-color-scheme:dark){
.tf-card{fill:#1a1e22}.tf-ink{fill:#e8eaed}.tf-soft{fill:#9aa2ab}.tf-grid{stroke:#2b3137}
.tf-limit{stroke:#fb923c}.tf-limit-text{fill:#fb923c}.tf-line{stroke:#7aa5d8}
.tf-area{fill:#7aa5d8}.tf-point{fill:#7aa5d8;stroke:#1a1e22}.tf-chosen{fill:#fb923c;stroke:#1a1e22}}
"""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """One plan.

    Attributes:
        peak_bytes: Peak of its arena.
        added_share: Operations that it adds, as a share of all.
        again: What runs again, in words.
        is_chosen: Whether it is the plan that was asked for.
    """

    peak_bytes: int
    added_share: float
    again: str
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class FrontierPicture:
    """Plans by decreasing peak, at least one.

    Attributes:
        title: Name of the model.
        subtitle: What was planned.
        points: The plans; each adds more operations than the one before it.
        given_bytes: Peak of the steps in the order given.
        least_bytes: Bytes that any way to run the steps takes.
        budget_bytes: The budget asked for; None if there is none.
    """

    title: str
    subtitle: str
    points: tuple[FrontierPoint, ...]
    given_bytes: int
    least_bytes: int
    budget_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Scale:
    top_bytes: int
    top_share: float

    def x(self, size_bytes: float) -> float:
        return _LEFT + size_bytes / self.top_bytes * (_RIGHT - _LEFT)

    def y(self, share: float) -> float:
        high = log2(1 + self.top_share / _FINE)
        return _BOTTOM - log2(1 + share / _FINE) / high * (_BOTTOM - _TOP)


def frontier_svg(picture: FrontierPicture) -> str:
    """Draw the plans as an SVG, readable on light and on dark pages.

    A point tells under the pointer what its plan takes, adds and runs again.
    """
    widest = max(picture.given_bytes, picture.points[0].peak_bytes, picture.budget_bytes or 0)
    top = max(point.added_share for point in picture.points)
    scale = _Scale(max(1, widest * 21 // 20), max(0.1, 1.15 * top))
    label = f"Operations against bytes of {picture.title}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" '
        f'role="img" aria-label="{escaped(label)}" '
        'font-family="system-ui,sans-serif" font-size="12">',
        f"<style>{STYLE}</style>",
        f'<rect class="tf-card" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        f'<text x="{_LEFT}" y="28" font-size="15"><tspan class="tf-ink" font-weight="600">'
        f"{escaped(shorten(printable(picture.title), 50))}</tspan>"
        f'<tspan class="tf-soft" dx="10">{escaped(picture.subtitle)}</tspan></text>',
        *_axes(scale),
        *_marks(picture, scale),
        *_plans(picture, scale),
        "</svg>",
    ]
    return "\n".join(parts)


def _axes(scale: _Scale) -> Iterator[str]:
    yield words(_LEFT, _TOP - 12, "operations added", "tf-soft")
    for share in _SHARES:
        if share <= scale.top_share:
            y = scale.y(share)
            yield line(_LEFT, y, _RIGHT, y, "tf-grid")
            yield words(_LEFT - 8, y + 4, f"{share:.0%}", "tf-soft", "end")
    for size_bytes, label in byte_ticks(scale.top_bytes, 8):
        x = scale.x(size_bytes)
        yield line(x, _BOTTOM, x, _BOTTOM + 4, "tf-grid")
        yield words(x, _BOTTOM + 18, label, "tf-soft", "middle")
    yield words(_RIGHT, _BOTTOM + 40, "peak of the arena (bytes)", "tf-soft", "end")


def _marks(picture: FrontierPicture, scale: _Scale) -> Iterator[str]:
    """Draw the bound, the peak of the order given, and the budget as upright lines."""
    least = f"no way to run the steps takes less than {format_bytes(picture.least_bytes)}"
    given = f"in the order given: {format_bytes(picture.given_bytes)}"
    for size_bytes, hint in ((picture.least_bytes, least), (picture.given_bytes, given)):
        x = scale.x(size_bytes)
        mark = line(x, _TOP, x, _BOTTOM, "tf-bound")
        yield f"<g><title>{escaped(hint)}</title>{mark}</g>"
    yield words(scale.x(picture.given_bytes), _TOP - 12, "as given", "tf-soft", "end")
    if picture.least_bytes:
        yield words(scale.x(picture.least_bytes) + 4, _BOTTOM - 6, "bound", "tf-soft")
    if picture.budget_bytes is not None:
        x = scale.x(picture.budget_bytes)
        yield line(x, _TOP, x, _BOTTOM, "tf-limit")
        text = f"budget {format_bytes(picture.budget_bytes)}"
        yield words(x + 6, _TOP + 14, text, "tf-limit-text")


def _plans(picture: FrontierPicture, scale: _Scale) -> Iterator[str]:
    """Draw steps: within a budget between two plans, the one to the left of it is the cheapest."""
    corners: list[tuple[float, float]] = []
    for point in picture.points:
        x, y = scale.x(point.peak_bytes), scale.y(point.added_share)
        if corners:
            corners.append((corners[-1][0], y))
        corners.append((x, y))
    path = " ".join(f"{x:.2f},{y:.2f}" for x, y in [(float(_RIGHT), corners[0][1]), *corners])
    yield f'<polyline class="tf-line" points="{path}"/>'
    for point in sorted(picture.points, key=lambda each: each.is_chosen):
        kind, radius = ("chosen", 7.0) if point.is_chosen else ("point", 4.5)
        x, y = scale.x(point.peak_bytes), scale.y(point.added_share)
        yield (
            f'<circle class="tf-{kind}" cx="{x:.2f}" cy="{y:.2f}" r="{radius}">'
            f"<title>{escaped(_hint(point))}</title></circle>"
        )
        if point.is_chosen:
            text = f"{format_bytes(point.peak_bytes)}, +{point.added_share:.1%}"
            yield words(x + 11, y - 8, text, "tf-ink")


def _hint(point: FrontierPoint) -> str:
    chosen = "chosen: " if point.is_chosen else ""
    added = f"{chosen}{format_bytes(point.peak_bytes)}, +{point.added_share:.2%} operations"
    return f"{added}; again: {point.again}" if point.again else f"{added}; nothing runs again"
