"""Makes a self-contained HTML page of a memory plan, which needs no network."""

from string import Template

from tightship.quantity import format_bytes
from tightship.view.inline import asset, digest, script_of
from tightship.view.page_data import page_data, rows, swatch, text_of, texts
from tightship.view.page_extras import NOTHING, Extras, Overlay
from tightship.view.palette import Colouring, colouring
from tightship.view.picture import Picture
from tightship.view.svg import STYLE, svg

_SCRIPTS = (
    "units.js",
    "elements.js",
    "plan.js",
    "grid.js",
    "compared.js",
    "scale.js",
    "raster.js",
    "window.js",
    "axes.js",
    "draw.js",
    "vector.js",
    "layout.js",
    "groups.js",
    "export.js",
    "panel.js",
    "page.js",
)
_LIVE_SHOWN = 12
_DYNAMIC_SHOWN = 50
_CHANGES_SHOWN = 20
_STILL_RECTANGLES_MAX = 400


def timeline(picture: Picture, extras: Extras = NOTHING) -> str:
    """Make the HTML document of a plan: steps to the right, addresses upward.

    The page's policy forbids all requests and all scripts but its own. Names are embedded as data,
    so they stay text whatever characters they contain. Without JavaScript the page shows the
    figures and a still picture.

    Args:
        picture: The plan.
        extras: Another plan to compare with, plans for other lengths, a measurement.
    """
    colours = colouring(picture)
    style = asset("timeline.css")
    script = script_of(_SCRIPTS)
    still = svg(picture, rectangles_max=_STILL_RECTANGLES_MAX)
    policy = (
        f"default-src 'none'; img-src data:; script-src '{digest(script)}'; "
        f"style-src '{digest(style)}' '{digest(STYLE)}'"
    )
    peak_step = picture.peak_step()
    live = picture.live_at(peak_step)
    shown = texts(picture, extras.measured)
    return Template(asset("timeline.html")).substitute(
        policy=policy,
        style=style,
        script=script,
        svg=still,
        data=page_data(picture, extras),
        title=text_of(picture.title),
        legend=_legend(colours),
        live_title=f"Live at the peak, step {peak_step:,}",
        live="".join(
            f"<li>{text_of(r.name)}, {format_bytes(r.size_bytes)}</li>" for r in live[:_LIVE_SHOWN]
        ),
        changes="" if extras.overlay is None else _changes(picture, extras.overlay),
        dynamic=_dynamic(picture),
        **shown,
    )


def _legend(colours: Colouring) -> str:
    items = (
        f"<li>{swatch(f'fill{family.slot}')}{text_of(family.label)}</li>"
        for family in colours.families
    )
    return "".join([*items, "<li>strong colour: live at the chosen step</li>"])


def _changes(picture: Picture, overlay: Overlay) -> str:
    """Tabulate what moved the peak between two plans."""
    found = [
        [
            f"{text_of(name)}<small>{text_of(why)}</small>",
            format_bytes(before),
            format_bytes(after),
        ]
        for name, why, before, after in overlay.rows[:_CHANGES_SHOWN]
    ]
    rest = len(overlay.rows) - len(found)
    more = f"<p class='rest'>and {rest:,} more</p>" if rest > 0 else ""
    cause = f"<p>{text_of(overlay.cause)}</p>" if overlay.cause else ""
    peaks = f"{format_bytes(overlay.old.peak_bytes)} to {format_bytes(picture.peak_bytes)}"
    name = text_of(overlay.name or overlay.old.title)
    return (
        f"<section><h2>What moved the peak: {peaks}</h2><p>Old plan: {name}</p>{cause}"
        f"<div class='changes'>{rows(found)}</div>{more}</section>"
    )


def _dynamic(picture: Picture) -> str:
    steps = picture.dynamic_steps
    if not steps:
        return ""
    items = [
        f"<li>{text_of(f'{index}: {step.operator} {step.name}: {step.dynamic_reason}')}</li>"
        for index, step in steps[:_DYNAMIC_SHOWN]
    ]
    if len(steps) > _DYNAMIC_SHOWN:
        items.append(f"<li>and {len(steps) - _DYNAMIC_SHOWN} more</li>")
    return f"<section><h2>Outside the plan</h2><ul class='outside'>{''.join(items)}</ul></section>"
