"""Writes plans as the data of a page: columns of numbers, and words named once."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from html import escape

from tightship.quantity import format_bytes
from tightship.view.inline import json_text
from tightship.view.page_extras import Extras, Measured
from tightship.view.palette import Colouring, by_group, colouring, modules_of, operators_of
from tightship.view.picture import Picture
from tightship.view.report import exactness

_PART_ORDER = ("weights", "arena", "inputs and outputs", "runtime")


def page_data(picture: Picture, extras: Extras) -> str:
    """Return a plan and what is shown beside it as JSON that no element of HTML can end."""
    values = columns(picture)
    if extras.measured is not None:
        values["times"] = list(extras.measured.step_ns)
    if extras.overlay is not None:
        values["old"] = columns(extras.overlay.old)
        values["pairs"] = list(extras.overlay.pairs)
        values["places"] = [round(place, 3) for place in extras.overlay.places]
    if extras.lengths:
        values["lengthName"] = extras.length_name
        values["lengths"] = [
            {"length": length, "plan": None if each is picture else columns(each)}
            for length, each in extras.lengths
        ]
    return json_text(json.dumps(values, separators=(",", ":")))


def columns(picture: Picture) -> dict[str, object]:
    """Return the columns of a plan's buffers and steps, and the texts beside the picture."""
    load = picture.load()
    rectangles = picture.rectangles
    colours = colouring(picture)
    return {
        "title": picture.title,
        "arena": picture.arena_bytes,
        "bound": picture.lower_bound_bytes,
        "total": picture.peak_bytes,
        "steps": picture.step_count,
        "peak": picture.peak_step(),
        "loadSteps": [step for step, _ in load],
        "loadBytes": [live_bytes for _, live_bytes in load],
        "stepNames": [step.name for step in picture.steps],
        "operators": _interned(step.operator for step in picture.steps),
        "kernels": _interned(step.kernel for step in picture.steps),
        "names": [r.name for r in rectangles],
        "sizes": [r.size_bytes for r in rectangles],
        "offsets": [r.offset_bytes for r in rectangles],
        "starts": [r.start_step for r in rectangles],
        "stops": [r.stop_step for r in rectangles],
        "kinds": _interned(r.kind for r in rectangles),
        "shares": [r.shares_with for r in rectangles],
        "slots": colours.slots,
        "groupings": _groupings(picture, colours),
        "texts": texts(picture),
    }


def texts(picture: Picture, measured: Measured | None = None) -> dict[str, str]:
    """Return the HTML of the texts beside a picture, by the id of their element."""
    return {
        "facts": _facts(picture),
        "total": format_bytes(picture.peak_bytes),
        "exactness": f"peak memory, {exactness(picture)}" if picture.parts else "arena",
        "parts": _parts(picture) if picture.parts else "",
        "measured": _measured(picture, measured) if measured is not None else "",
        "strategies": _strategies(picture),
    }


def _groupings(picture: Picture, colours: Colouring) -> list[dict[str, object]]:
    """Return ways to group buffers: by operator and by module, or by size for a plan of buffers."""
    if not picture.steps:
        labels = {family.slot: family.label for family in colours.families}
        return [_grouping("size", [labels[slot] for slot in colours.slots], colours)]
    found = [("operator", operators_of(picture), colours)]
    modules = modules_of(picture)
    if any(modules):
        found.append(("module", modules, by_group(picture, modules, "modules")))
    return [_grouping(*each) for each in found]


def _grouping(name: str, groups: Sequence[str], colours: Colouring) -> dict[str, object]:
    return {
        "name": name,
        "families": [[family.slot, family.label] for family in colours.families],
        "slots": colours.slots,
        "groups": _interned(group or "unknown" for group in groups),
    }


def _interned(words: Iterable[str]) -> dict[str, list[str] | list[int]]:
    index_of: dict[str, int] = {}
    at = [index_of.setdefault(word, len(index_of)) for word in words]
    return {"words": list(index_of), "at": at}


def text_of(text: str) -> str:
    """Return a text as HTML shows it, without letters that no file can hold."""
    return escape(text.encode("utf-8", "replace").decode())


def _facts(picture: Picture) -> str:
    groups = (("", picture.inputs), (" → ", picture.outputs), (" · ", picture.key))
    return "".join(mark + text_of(_listed(facts)) for mark, facts in groups if facts)


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in facts.items())


def swatch(name: str, size: int = 11) -> str:
    """Return a small square of a colour, by its class."""
    shape = f'<rect class="{name}" rx="2" width="{size}" height="{size}"/>'
    return f'<svg width="{size}" height="{size}" aria-hidden="true">{shape}</svg>'


def _parts(picture: Picture) -> str:
    sizes = {"arena": picture.arena_bytes, **picture.parts}
    names = [name for name in _PART_ORDER if name in sizes]
    total = max(1, picture.peak_bytes)
    bars, left = [], 0.0
    for index, name in enumerate(names):
        width = 100 * sizes[name] / total
        bars.append(f'<rect class="part{index}" x="{left:.2f}" width="{width:.2f}" height="10"/>')
        left += width
    part_swatch = partial(swatch, size=9)
    rows_of = [
        [f"{part_swatch(f'part{index}')}{text_of(name)}", format_bytes(sizes[name])]
        for index, name in enumerate(names)
    ]
    bar = (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(bars)}</svg>"
    )
    beside = [[text_of(name), format_bytes(size)] for name, size in picture.apart.items()]
    while_loading = rows([["while it loads", ""], *beside]) if beside else ""
    return f'<div class="parts">{bar}{rows(rows_of)}{while_loading}</div>'


def _measured(picture: Picture, measured: Measured) -> str:
    sizes = (
        ("most that was resident", measured.resident_bytes),
        ("reserved for writing", measured.data_bytes),
    )
    found = [
        [name, format_bytes(size), f"{size / max(1, picture.peak_bytes):.2f} of plan"]
        for name, size in sizes
        if size is not None
    ]
    if measured.step_ns:
        found.append(["time of all steps", f"{sum(measured.step_ns) / 1e6:,.2f} ms", ""])
    return f"<h2>Measured</h2>{rows(found)}"


def _strategies(picture: Picture) -> str:
    sizes = dict(picture.strategies) or {"this plan": picture.arena_bytes}
    bound = picture.lower_bound_bytes
    found, classes = [], []
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        found.append([text_of(name), format_bytes(size), f"{size / bound:,.2f}x" if bound else ""])
        classes.append("chosen" if name == picture.strategy else "")
    found.append(["lower bound", format_bytes(bound), ""])
    return rows(found, [*classes, "bound"])


def rows(cells: Iterable[Iterable[str]], classes: Iterable[str] = ()) -> str:
    """Return a table of cells that are HTML, with a class for each row."""
    lines = list(cells)
    marked = zip(lines, list(classes) or [""] * len(lines), strict=True)
    shown = (
        f'<tr class="{name}">{"".join(f"<td>{cell}</td>" for cell in row)}</tr>'
        for row, name in marked
    )
    return f"<table>{''.join(shown)}</table>"
