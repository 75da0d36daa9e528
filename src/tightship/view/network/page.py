"""Makes a self-contained HTML page of a network, which needs no network connection."""

import json
from collections.abc import Sequence
from string import Template

from tightship.quantity import format_bytes
from tightship.view.inline import asset, digest, json_text, script_of
from tightship.view.network.bands import bands_of, shares_of
from tightship.view.network.levels import Level
from tightship.view.network.network import Network
from tightship.view.network.svg import STYLE, network_svg
from tightship.view.page_data import text_of, texts

_SCRIPTS = (
    "units.js",
    "elements.js",
    "scale.js",
    "network_state.js",
    "network_place.js",
    "network_draw.js",
    "network_side.js",
    "network_page.js",
)
_PLACES = 1
"""Decimals of a pixel in the data."""


def network_page(network: Network, levels: Sequence[Level], step: int | None = None) -> str:
    """Make the HTML document of a network, with a slider through the steps.

    The page's policy forbids all requests and all scripts but its own. Names are embedded as data.
    Without JavaScript the page shows a still picture.

    Args:
        network: The network.
        levels: Its levels.
        step: Step that is shown first; None for the whole plan.
    """
    style = asset("network.css")
    script = script_of(_SCRIPTS)
    policy = (
        f"default-src 'none'; img-src data:; script-src '{digest(script)}'; "
        f"style-src '{digest(style)}' '{digest(STYLE)}'"
    )
    picture = network.picture
    data = json.dumps(page_data(network, levels, step), separators=(",", ":"))
    return Template(asset("network.html")).substitute(
        policy=policy,
        style=style,
        script=script,
        svg=network_svg(network, levels, step),
        data=json_text(data),
        title=text_of(picture.title),
        facts=texts(picture)["facts"],
        arena=format_bytes(picture.arena_bytes),
    )


def page_data(network: Network, levels: Sequence[Level], step: int | None) -> dict[str, object]:
    """Return a network and its levels as columns, for the page's script."""
    picture, values = network.picture, network.values
    bands = bands_of(values, picture.arena_bytes)
    return {
        "title": picture.title,
        "arena": picture.arena_bytes,
        "bands": bands,
        "first": -1 if step is None else step,
        "peak": picture.peak_step(),
        "steps": [
            [each.name, each.operator, each.kernel, each.live_bytes, each.dynamic_reason or ""]
            for each in network.steps
        ],
        "reads": network.reads,
        "writes": network.writes,
        "scratch": network.scratch,
        "weights": _weights(network),
        "values": [
            [v.name, v.kind, v.size_bytes, v.offset_bytes, v.start_step, v.stop_step, v.shares_with,
             v.type, v.readers]
            for v in values
        ],
        "shares": [[[b, round(share, 4)] for b, share in shares_of(v, bands)] for v in values],
        "levels": [_level(level) for level in levels],
    }  # fmt: skip


def _weights(network: Network) -> dict[int, list[tuple[str, int]]]:
    """Return the packed constants that each step is the first to read, by step."""
    found: dict[int, list[tuple[str, int]]] = {}
    for weight in network.picture.weights:
        found.setdefault(weight.step, []).append((weight.name, weight.size_bytes))
    return found


def _level(level: Level) -> dict[str, object]:
    layout = level.layout
    return {
        "name": level.name,
        "size": [round(layout.width, _PLACES), round(layout.height, _PLACES)],
        "boxes": [
            [box.label, box.detail, box.node, box.level, box.values, int(box.is_port), box.steps,
             [round(each, _PLACES) for each in place]]
            for box, place in zip(level.boxes, layout.boxes, strict=True)
        ],
        "edges": [
            [a, b, edge_values, int(is_loose),
             [round(each, _PLACES) for point in route for each in point]]
            for (a, b, edge_values), route, is_loose in zip(
                level.edges, layout.routes, layout.loose, strict=True
            )
        ],
    }  # fmt: skip
