"""Writes the output of `tightship plan`: the peak first, then its parts."""

from collections.abc import Iterator, Mapping

from tightship.quantity import format_bytes, format_limit
from tightship.view.picture import Picture, Rectangle
from tightship.view.table import WIDTH_MAX, Column, table
from tightship.view.text import printable, shorten

_LIVE_SHOWN = 8
_DYNAMIC_SHOWN = 5
_INDENT = 2
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_MEANING = {
    "weights": "packed constants, resident as long as the model",
    "inputs and outputs": "bound where the caller has them",
    "runtime": "libraries, generated code and program",
}
_MEANING_APART = {
    "planning process": "another process, which plans and packs, and ends before the first run",
    "both at once": "room that a container needs for loading",
    "planned here": "peak of a process that has imported onnx, or has no room for two",
}
_ORDER = ("weights", "arena", "inputs and outputs", "runtime")


def report(picture: Picture, *, bold: bool = False) -> str:
    """Describe the memory of a plan and its peak in about 30 lines of at most 100 columns.

    Args:
        picture: The plan.
        bold: Whether to set the peak in bold by a terminal's escape codes; False by default.
    """
    blocks = [
        _headline(picture, bold=bold),
        list(_facts(picture)),
        _parts(picture),
        _apart(picture),
        _strategies(picture),
        peak(picture),
        list(_dynamic(picture)),
    ]
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def to_json(picture: Picture) -> dict[str, object]:
    """Return the plan as JSON values: names unchanged, amounts as integers named `*_bytes`."""
    peak_step = picture.peak_step()
    return {
        "model": picture.title,
        "exact": picture.is_exact,
        "peak_bytes": picture.peak_bytes,
        "arena_bytes": picture.arena_bytes,
        **{f"{part.replace(' ', '_')}_bytes": size for part, size in picture.parts.items()},
        **apart_json(picture),
        "lower_bound_bytes": picture.lower_bound_bytes,
        "gap": picture.gap,
        "strategy": picture.strategy,
        "strategies": [
            {"strategy": name, "arena_bytes": size} for name, size in picture.strategies.items()
        ],
        "peak_step": peak_step,
        "live_at_peak": [rectangle.name for rectangle in picture.live_at(peak_step)],
        "key": dict(picture.key),
        "inputs": dict(picture.inputs),
        "outputs": dict(picture.outputs),
        "steps": [
            {
                "step": index,
                "name": step.name,
                "operator": step.operator,
                "kernel": step.kernel,
                "live_bytes": step.live_bytes,
                "dynamic_reason": step.dynamic_reason,
                "reads": list(step.reads),
                "writes": list(step.writes),
            }
            for index, step in enumerate(picture.steps)
        ],
        "tensors": [
            {
                "name": rectangle.name,
                "kind": rectangle.kind,
                "operator": picture.operator_of(rectangle),
                "size_bytes": rectangle.size_bytes,
                "offset_bytes": rectangle.offset_bytes,
                "start_step": rectangle.start_step,
                "stop_step": rectangle.stop_step,
                "shares_with": rectangle.shares_with,
                "type": rectangle.type,
            }
            for rectangle in picture.rectangles
        ],
        "weights": [
            {
                "name": weight.name,
                "size_bytes": weight.size_bytes,
                "type": weight.type,
                "step": weight.step,
            }
            for weight in picture.weights
        ],
    }


def apart_json(picture: Picture) -> dict[str, object]:
    """Return bytes of loading a model that another process plans as JSON; empty for others."""
    if not picture.apart:
        return {}
    return {
        "planned_apart": {
            f"{name.replace(' ', '_')}_bytes": size for name, size in picture.apart.items()
        }
    }


def _headline(picture: Picture, *, bold: bool) -> list[str]:
    number = format_bytes(picture.peak_bytes)
    noun = "peak memory of" if picture.parts else "arena of"
    title = shorten(printable(picture.title), WIDTH_MAX - len(number) - len(noun) - 2)
    shown = f"{_BOLD}{number}{_PLAIN}" if bold else number
    return [f"{shown} {noun} {title}", f"{picture.peak_bytes:,} bytes{_verdict(picture)}"]


def _verdict(picture: Picture) -> str:
    if not picture.parts:
        return ""
    verdict = f", {exactness(picture)}"
    if picture.is_exact:
        verdict += f"; --max-memory {format_limit(picture.peak_bytes)} holds it"
    return verdict


def exactness(picture: Picture) -> str:
    """Say in one clause whether the peak is exact or bounded."""
    if picture.is_exact:
        return "exact: every tensor is in it"
    count = len(picture.dynamic_steps)
    return f"bounded: {count} step{'s' * (count > 1)} may allocate more"


def _facts(picture: Picture) -> Iterator[str]:
    for label, facts in (("in", picture.inputs), ("out", picture.outputs), ("for", picture.key)):
        if facts:
            yield shorten(f"{label:<5}{_listed(facts)}", WIDTH_MAX)


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(printable(f"{name} {value}".strip()) for name, value in facts.items())


def _parts(picture: Picture) -> list[str]:
    if not picture.parts:
        return []
    sizes = {"arena": picture.arena_bytes, **picture.parts}
    names = [name for name in _ORDER if name in sizes]
    meanings = {**_MEANING, "arena": _arena_meaning(picture)}
    rows = [[name, format_bytes(sizes[name]), meanings.get(name, "")] for name in names]
    columns = [Column("part"), Column("size", number=True), Column("what it is")]
    return table(columns, rows, indent=_INDENT)


def _apart(picture: Picture) -> list[str]:
    if not picture.apart:
        return []
    rows = [[name, format_bytes(size), _MEANING_APART.get(name, "")]
            for name, size in picture.apart.items()]  # fmt: skip
    columns = [Column("while it loads"), Column("size", number=True), Column("what it is")]
    return table(columns, rows, indent=_INDENT)


def _arena_meaning(picture: Picture) -> str:
    live = picture.live_at(picture.peak_step())
    scratch_bytes = sum(r.size_bytes for r in live if r.kind == "scratch")
    return f"activations and scratch; {format_bytes(scratch_bytes)} of scratch at the peak"


def _strategies(picture: Picture) -> list[str]:
    sizes = dict(picture.strategies)
    if picture.strategy not in sizes:
        sizes[picture.strategy or "this plan"] = picture.arena_bytes
    sizes["lower bound"] = picture.lower_bound_bytes
    ordered = sorted(sizes.items(), key=lambda item: (-item[1], item[0] == "lower bound"))
    rows = [
        [
            f"{name} (this plan)" if name == picture.strategy else name,
            format_bytes(size),
            _ratio(size, picture.lower_bound_bytes),
        ]
        for name, size in ordered
    ]
    columns = [
        Column("arena by strategy"),
        Column("size", number=True),
        Column("of lower bound", number=True),
    ]
    return table(columns, rows, indent=_INDENT)


def _ratio(size_bytes: int, lower_bound_bytes: int) -> str:
    return f"{size_bytes / lower_bound_bytes:,.3f}x" if lower_bound_bytes else "·"


def peak(picture: Picture, shown: int = _LIVE_SHOWN) -> list[str]:
    """Describe the step of the peak and the largest buffers live there; empty for no buffers."""
    if not picture.rectangles:
        return []
    step = picture.peak_step()
    live = picture.live_at(step)
    rows = [_live_row(picture, rectangle) for rectangle in live[:shown]]
    columns = [
        Column("live at the peak"),
        Column("made by"),
        Column("size", number=True),
        Column("offset", number=True),
        Column("steps", number=True),
    ]
    lines = [_peak_title(picture, step), *table(columns, rows, indent=_INDENT)]
    if rest := live[shown:]:
        rest_bytes = sum(rectangle.size_bytes for rectangle in rest)
        lines.append(f"{'':{_INDENT}}… and {len(rest)} smaller, {format_bytes(rest_bytes)}")
    return lines


def _peak_title(picture: Picture, step: int) -> str:
    live_bytes = max(load for _, load in picture.load())
    title = f"Peak at step {step} of {picture.step_count}: {format_bytes(live_bytes)} live"
    if step < len(picture.steps):
        running = picture.steps[step]
        title += f", in {printable(running.operator)} {printable(running.name)}"
        title += f" ({running.kernel})" if running.kernel else ""
    return shorten(title, WIDTH_MAX)


def _live_row(picture: Picture, rectangle: Rectangle) -> list[str]:
    operator = picture.operator_of(rectangle)
    return [
        rectangle.name,
        f"{operator} scratch".strip() if rectangle.kind == "scratch" else operator,
        format_bytes(rectangle.size_bytes),
        format_bytes(rectangle.offset_bytes),
        f"{rectangle.start_step} to {rectangle.stop_step - 1}",
    ]


def _dynamic(picture: Picture) -> Iterator[str]:
    steps = picture.dynamic_steps
    if steps:
        yield "Steps that allocate outside the plan"
    for index, step in steps[:_DYNAMIC_SHOWN]:
        line = f"{step.operator} {shorten(step.name, 40)}: {step.dynamic_reason}"
        yield shorten(printable(f"{'':{_INDENT}}{index:>5}  {line}"), WIDTH_MAX)
    if len(steps) > _DYNAMIC_SHOWN:
        yield f"{'':{_INDENT}}… and {len(steps) - _DYNAMIC_SHOWN} more"
