"""Makes a self-contained HTML page of a memory plan, which needs no network."""

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from tightship.quantity import format_bytes
from tightship.view.palette import Colouring, colouring
from tightship.view.picture import Picture
from tightship.view.report import exactness
from tightship.view.svg import STYLE, svg

_SCRIPTS = ("plan.js", "scale.js", "window.js", "draw.js", "page.js")
_LIVE_SHOWN = 12
_DYNAMIC_SHOWN = 50
_STILL_RECTANGLES_MAX = 400
_PART_ORDER = ("weights", "arena", "inputs and outputs", "runtime")


def timeline(picture: Picture) -> str:
    """Make the HTML document of a plan: steps to the right, addresses upward.

    The page's policy forbids all requests and all scripts but its own. Names are embedded as data,
    so they stay text whatever characters they contain. Without JavaScript the page shows the
    figures and a still picture.
    """
    colours = colouring(picture)
    style = _asset("timeline.css")
    script = "'use strict';\n{\n" + "\n".join(map(_asset, _SCRIPTS)) + "}\n"
    still = svg(picture, rectangles_max=_STILL_RECTANGLES_MAX)
    policy = (
        f"default-src 'none'; img-src data:; script-src '{_hash(script)}'; "
        f"style-src '{_hash(style)}' '{_hash(STYLE)}'"
    )
    peak_step = picture.peak_step()
    live = picture.live_at(peak_step)
    return Template(_asset("timeline.html")).substitute(
        policy=policy,
        style=style,
        script=script,
        svg=still,
        data=_data(picture, colours),
        title=_text(picture.title),
        facts=_facts(picture),
        legend=_legend(colours),
        peak=format_bytes(picture.peak_bytes),
        peak_label=f"peak memory, {exactness(picture)}" if picture.parts else "arena",
        parts=_parts(picture) if picture.parts else "",
        live_title=f"Live at the peak, step {peak_step:,}",
        live="".join(
            f"<li>{_text(r.name)}, {format_bytes(r.size_bytes)}</li>" for r in live[:_LIVE_SHOWN]
        ),
        strategies=_strategies(picture),
        dynamic=_dynamic(picture),
    )


def _asset(name: str) -> str:
    return files("tightship.view").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"


def _text(text: str) -> str:
    return escape(text.encode("utf-8", "replace").decode())


def _data(picture: Picture, colours: Colouring) -> str:
    load = picture.load()
    rectangles = picture.rectangles
    columns = {
        "arena": picture.arena_bytes,
        "bound": picture.lower_bound_bytes,
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
    }
    # Escaped angle brackets keep a name such as `</script>` from ending the script element.
    plain = json.dumps(columns, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _interned(words: Iterable[str]) -> dict[str, list[str] | list[int]]:
    index_of: dict[str, int] = {}
    at = [index_of.setdefault(word, len(index_of)) for word in words]
    return {"words": list(index_of), "at": at}


def _facts(picture: Picture) -> str:
    groups = (("", picture.inputs), (" → ", picture.outputs), (" · ", picture.key))
    return "".join(mark + _text(_listed(facts)) for mark, facts in groups if facts)


def _listed(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {value}".strip() for name, value in facts.items())


def _legend(colours: Colouring) -> str:
    swatch = '<svg width="11" height="11" aria-hidden="true"><rect class="fill{}" rx="2" {}/></svg>'
    size = 'width="11" height="11"'
    items = (
        f"<li>{swatch.format(family.slot, size)}{_text(family.label)}</li>"
        for family in colours.families
    )
    return "".join([*items, "<li>strong colour: live at the chosen step</li>"])


def _parts(picture: Picture) -> str:
    sizes = {"arena": picture.arena_bytes, **picture.parts}
    names = [name for name in _PART_ORDER if name in sizes]
    total = max(1, picture.peak_bytes)
    bars, left = [], 0.0
    for index, name in enumerate(names):
        width = 100 * sizes[name] / total
        bars.append(f'<rect class="part{index}" x="{left:.2f}" width="{width:.2f}" height="10"/>')
        left += width
    swatch = '<svg width="9" height="9" aria-hidden="true"><rect class="part{}" {}/></svg>'
    size = 'width="9" height="9" rx="2"'
    rows = [
        [f"{swatch.format(index, size)}{_text(name)}", format_bytes(sizes[name])]
        for index, name in enumerate(names)
    ]
    bar = (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{''.join(bars)}</svg>"
    )
    return f'<div class="parts">{bar}{_rows(rows)}</div>'


def _strategies(picture: Picture) -> str:
    sizes = dict(picture.strategies) or {"this plan": picture.arena_bytes}
    bound = picture.lower_bound_bytes
    rows, classes = [], []
    for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
        rows.append([_text(name), format_bytes(size), f"{size / bound:,.2f}x" if bound else ""])
        classes.append("chosen" if name == picture.strategy else "")
    rows.append(["lower bound", format_bytes(bound), ""])
    return _rows(rows, [*classes, "bound"])


def _rows(rows: Sequence[Sequence[str]], classes: Sequence[str] = ()) -> str:
    marked = zip(rows, classes or [""] * len(rows), strict=True)
    lines = (
        f'<tr class="{name}">{"".join(f"<td>{cell}</td>" for cell in row)}</tr>'
        for row, name in marked
    )
    return f"<table>{''.join(lines)}</table>"


def _dynamic(picture: Picture) -> str:
    steps = picture.dynamic_steps
    if not steps:
        return ""
    items = [
        f"<li>{_text(f'{index}: {step.operator} {step.name}: {step.dynamic_reason}')}</li>"
        for index, step in steps[:_DYNAMIC_SHOWN]
    ]
    if len(steps) > _DYNAMIC_SHOWN:
        items.append(f"<li>and {len(steps) - _DYNAMIC_SHOWN} more</li>")
    return f"<section><h2>Outside the plan</h2><ul class='outside'>{''.join(items)}</ul></section>"
