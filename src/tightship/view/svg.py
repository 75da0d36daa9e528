"""Draws a memory plan as a still picture, for documents and notebooks."""

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from tightship.quantity import format_bytes
from tightship.view.live_curve import live_curve
from tightship.view.marks import escaped, line, words
from tightship.view.palette import Colouring, colouring
from tightship.view.picture import Picture, Rectangle
from tightship.view.scale import byte_ticks, step_ticks
from tightship.view.text import display_width, printable, shorten

WIDTH, HEIGHT = 960, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 74, 946, 64, 396
_CELL = 3
_CHARACTER_WIDTH = 6.6
_LEGEND_CHARACTER, _LEGEND_GAP = 8, 26
"""Width of a character of a wide font, and of a mark with the space around it."""
_LABEL_WIDTH_MIN, _LABEL_HEIGHT_MIN = 56, 14

STYLE = """
.ts-card{fill:#fff}.ts-ink{fill:#1c2024}.ts-soft{fill:#62686f}.ts-grid{stroke:#e6e8eb}
.ts-bound{stroke:#0f766e;stroke-dasharray:5 4}.ts-bound-text{fill:#0f766e}
.ts-peak{stroke:#c2410c;stroke-dasharray:2 3}.ts-peak-text{fill:#c2410c}
.ts-load{fill:none;stroke:#1c2024;stroke-width:1.2;stroke-opacity:.75}
.ts-0{fill:#3f6fa8}.ts-1{fill:#3b9a8f}.ts-2{fill:#b5813a}.ts-3{fill:#a8567e}.ts-4{fill:#6f63ab}
.ts-5{fill:#6d8f3c}.ts-6{fill:#848b95}.ts-7{fill:#c3a99a}.ts-on{fill:#fff}
@media(prefers-color-scheme:dark){
.ts-card{fill:#1a1e22}.ts-ink{fill:#e8eaed}.ts-soft{fill:#9aa2ab}.ts-grid{stroke:#2b3137}
.ts-bound{stroke:#5eead4}.ts-bound-text{fill:#5eead4}
.ts-peak{stroke:#fb923c}.ts-peak-text{fill:#fb923c}.ts-load{stroke:#e8eaed}
.ts-0{fill:#7aa5d8}.ts-1{fill:#63c0b3}.ts-2{fill:#dcae6b}.ts-3{fill:#d68bb0}.ts-4{fill:#a59ade}
.ts-5{fill:#a5c46f}.ts-6{fill:#8b939d}.ts-7{fill:#8a7468}.ts-on{fill:#0e1114}}
"""


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class _Scale:
    """Maps steps and bytes to points of the picture."""

    steps: int
    top_bytes: int

    def x(self, step: float) -> float:
        return _LEFT + step / self.steps * (_RIGHT - _LEFT)

    def y(self, size_bytes: float) -> float:
        return _BOTTOM - size_bytes / self.top_bytes * (_BOTTOM - _TOP)

    def box(self, rectangle: Rectangle) -> _Box:
        left, right = self.x(rectangle.start_step), self.x(rectangle.stop_step)
        top = self.y(rectangle.offset_bytes + rectangle.size_bytes)
        return _Box(left, top, right - left, self.y(rectangle.offset_bytes) - top)


def svg(picture: Picture, *, rectangles_max: int = 1000) -> str:
    """Draw the plan as an SVG of steps and addresses, readable on light and on dark pages.

    Args:
        picture: The plan.
        rectangles_max: Most buffers to draw one by one. The smallest of more are drawn together, as
            cells of a raster, and a note states their number.
    """
    scale = _Scale(max(1, picture.step_count), _top_bytes(picture))
    colours = colouring(picture)
    label = f"Memory plan of {picture.title}: arena {format_bytes(picture.arena_bytes)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" '
        f'role="img" aria-label="{escaped(label)}" '
        'font-family="system-ui,sans-serif" font-size="12">',
        f"<style>{STYLE}</style>",
        f'<rect class="ts-card" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
        *_heading(picture),
        *_axes(scale),
        *_buffers(picture, colours, scale, rectangles_max),
        *_load(picture, scale),
        *_levels(picture, scale),
        _legend(colours),
        "</svg>",
    ]
    return "\n".join(parts)


def _top_bytes(picture: Picture) -> int:
    # A twentieth of room above the higher of both lines keeps them off the frame.
    return max(1, picture.arena_bytes, picture.lower_bound_bytes) * 21 // 20 + 1


def _heading(picture: Picture) -> Iterator[str]:
    title = escaped(shorten(printable(picture.title), 60))
    noun = "peak memory" if picture.parts else "arena"
    yield (
        f'<text x="{_LEFT}" y="28" font-size="15"><tspan class="ts-ink" font-weight="600">'
        f"{title}</tspan>"
        f'<tspan class="ts-soft" dx="10">{format_bytes(picture.peak_bytes)} {noun}</tspan></text>'
    )
    yield words(_LEFT, _TOP - 6, "address in the arena", "ts-soft")


def _axes(scale: _Scale) -> Iterator[str]:
    for size_bytes, label in byte_ticks(scale.top_bytes, 6):
        y = scale.y(size_bytes)
        yield line(_LEFT, y, _RIGHT, y, "ts-grid")
        yield words(_LEFT - 8, y + 4, label, "ts-soft", "end")
    for step in step_ticks(scale.steps, 10):
        x = scale.x(step)
        yield line(x, _BOTTOM, x, _BOTTOM + 4, "ts-grid")
        yield words(x, _BOTTOM + 17, f"{step:,}", "ts-soft", "middle")
    yield words(_RIGHT, _BOTTOM + 32, "step", "ts-soft", "end")


def _buffers(
    picture: Picture, colours: Colouring, scale: _Scale, rectangles_max: int
) -> Iterator[str]:
    boxes = [scale.box(rectangle) for rectangle in picture.rectangles]
    by_area = sorted(range(len(boxes)), key=lambda i: (-boxes[i].width * boxes[i].height, i))
    if merged := by_area[rectangles_max:]:
        yield from _merged([(boxes[i], colours.slots[i]) for i in merged])
        note = f"{len(merged):,} small buffers drawn together"
        yield words(_LEFT, _BOTTOM + 32, note, "ts-soft")
    for i in sorted(by_area[:rectangles_max]):
        yield from _buffer(picture, picture.rectangles[i], boxes[i], colours.slots[i])


def _buffer(picture: Picture, rectangle: Rectangle, box: _Box, slot: int) -> Iterator[str]:
    width = box.width - 1 if box.width > 4 else box.width
    height = box.height - 1 if box.height > 4 else box.height
    operator = picture.operator_of(rectangle)
    hint = f"{rectangle.name} {operator} {format_bytes(rectangle.size_bytes)}"
    yield (
        f'<rect class="ts-{slot}" x="{box.x:.1f}" y="{box.y:.1f}" width="{max(width, 0.3):.1f}" '
        f'height="{max(height, 0.3):.1f}"><title>{escaped(hint)}</title></rect>'
    )
    if width >= _LABEL_WIDTH_MIN and height >= _LABEL_HEIGHT_MIN:
        name = _name_in(printable(rectangle.name), int((width - 10) / _CHARACTER_WIDTH))
        if display_width(name) >= 4:
            yield (
                f'<text class="ts-on" font-size="11" pointer-events="none" x="{box.x + 5:.1f}" '
                f'y="{box.y + height / 2 + 4:.1f}">{escape(name)}</text>'
            )


def _name_in(name: str, width: int) -> str:
    """Shorten a tensor's name to `width` columns; its last part is kept rather than its ends."""
    return shorten(name if display_width(name) <= width else name.rpartition("/")[2], width)


def _merged(boxes: list[tuple[_Box, int]]) -> Iterator[str]:
    """Yield one path for each slot over raster cells near its boxes; earlier boxes win a cell."""
    slot_of: dict[tuple[int, int], int] = {}
    for box, slot in boxes:
        columns = _cells(box.x, box.width)
        for row in _cells(box.y, box.height):
            for column in columns:
                slot_of.setdefault((row, column), slot)
    rows: dict[tuple[int, int], list[int]] = {}
    for row, column in sorted(slot_of):
        rows.setdefault((slot_of[row, column], row), []).append(column)
    paths: dict[int, list[str]] = {}
    for (slot, row), columns_used in rows.items():
        paths.setdefault(slot, []).extend(
            f"M{start * _CELL} {row * _CELL}h{length * _CELL}v{_CELL}h-{length * _CELL}z"
            for start, length in _runs(columns_used)
        )
    for slot, runs in sorted(paths.items()):
        yield f'<path class="ts-{slot}" d="{"".join(runs)}"/>'


def _cells(position: float, length: float) -> range:
    first = round(position / _CELL)
    return range(first, max(first + 1, round((position + length) / _CELL)))


def _runs(columns: list[int]) -> Iterator[tuple[int, int]]:
    start = previous = columns[0]
    for column in columns[1:]:
        if column != previous + 1:
            yield start, previous + 1 - start
            start = column
        previous = column
    yield start, previous + 1 - start


def _load(picture: Picture, scale: _Scale) -> Iterator[str]:
    """Draw live bytes over the steps on the scale of addresses."""
    if picture.rectangles:
        curve = live_curve(picture.load(), scale.steps, _RIGHT - _LEFT, scale.y, _LEFT)
        yield f'<path class="ts-load" d="{curve}"><title>live bytes</title></path>'
        middle = (_LEFT + _RIGHT) / 2
        yield words(middle, _BOTTOM + 32, "line: live bytes", "ts-soft", "middle")


def _levels(picture: Picture, scale: _Scale) -> Iterator[str]:
    bound, arena = picture.lower_bound_bytes, picture.arena_bytes
    tight = arena == bound
    text = f"arena = lower bound {format_bytes(arena)}" if tight else _apart(arena, bound)
    yield words(_RIGHT, _TOP - 6, text, "ts-bound-text", "end")
    for size_bytes, style in ((arena, "ts-grid"), (bound, "ts-bound")):
        yield line(_LEFT, scale.y(size_bytes), _RIGHT, scale.y(size_bytes), style)
    if picture.rectangles:
        step = picture.peak_step()
        x = scale.x(step + 0.5)
        yield line(x, _TOP, x, _BOTTOM, "ts-peak")
        half = 44.0
        # The label must not run into the texts at both ends of the line.
        centre = min(max(x, _LEFT + 140 + half), _RIGHT - 280 - half)
        yield words(centre, _TOP - 6, f"peak, step {step:,}", "ts-peak-text", "middle")


def _apart(arena: int, bound: int) -> str:
    return f"arena {format_bytes(arena)}, lower bound {format_bytes(bound)}"


def _legend(colours: Colouring) -> str:
    """Make the legend as one line of text, so that any font places the labels without overlap."""
    names = [printable(family.label) for family in colours.families]
    room = _RIGHT - _LEFT - _LEGEND_GAP * len(names)
    width = max(map(display_width, names), default=1)
    while sum(min(width, display_width(name)) for name in names) * _LEGEND_CHARACTER > room:
        width -= 1
    items = (
        f'<tspan class="ts-{family.slot}" dx="{12 if index else 0}">■</tspan>'
        f'<tspan class="ts-soft" dx="4">{escape(shorten(name, width))}</tspan>'
        for index, (family, name) in enumerate(zip(colours.families, names, strict=True))
    )
    return f'<text x="{_LEFT}" y="446">{"".join(items)}</text>'
