"""Writes a network as JSON values: nodes, values, and the state at each step."""

from itertools import pairwise

from tightship.view.network.bands import bands_of, shares_of
from tightship.view.network.levels import Level
from tightship.view.network.moments import FreeBox, Moment, moments
from tightship.view.network.network import Network, Value


def network_json(network: Network, levels: list[Level]) -> dict[str, object]:
    """Return the network as JSON values; amounts are integers named `*_bytes`, values have names.

    Args:
        network: The network.
        levels: Its levels; the blocks of all of them are listed.
    """
    bands = bands_of(network.values, network.picture.arena_bytes)
    return {
        "model": network.picture.title,
        "arena_bytes": network.picture.arena_bytes,
        "peak_step": network.picture.peak_step(),
        "bands": [
            {"band": index, "offset_bytes": low, "size_bytes": high - low}
            for index, (low, high) in enumerate(pairwise(bands))
        ],
        "values": [_value(value, bands) for value in network.values],
        "nodes": [_node(network, node) for node in range(network.node_count)],
        "edges": [
            {"from": source, "to": target, "value": network.values[value].name}
            for source, target, value in network.edges
        ],
        "blocks": [
            {"name": box.label, "within": level.name, "steps": list(box.steps)}
            for level in levels
            for box in level.boxes
            if box.level >= 0
        ],
        "steps": [_moment(network, moment) for moment in moments(network)],
    }


def _value(value: Value, bands: tuple[int, ...]) -> dict[str, object]:
    return {
        "name": value.name,
        "kind": value.kind,
        "type": value.type,
        "size_bytes": value.size_bytes,
        "offset_bytes": value.offset_bytes if value.is_planned else None,
        "start_step": value.start_step,
        "stop_step": value.stop_step,
        "shares_with": value.shares_with or None,
        "bands": [band for band, _ in shares_of(value, bands)],
        "made_by": list(value.makers),
        "read_by": list(value.readers),
    }


def _node(network: Network, node: int) -> dict[str, object]:
    values = network.values
    if node >= len(network.steps):
        name = values[network.main_value(node)].name
        return {"node": node, "step": None, "name": name, "operator": "input", "reads": [],
                "writes": [name], "scratch_bytes": 0}  # fmt: skip
    step, scratch = network.steps[node], network.scratch[node]
    return {
        "node": node,
        "step": node,
        "name": step.name,
        "operator": step.operator,
        "reads": [values[value].name for value in network.reads[node]],
        "writes": [values[value].name for value in network.writes[node]],
        "scratch_bytes": values[scratch].size_bytes if scratch >= 0 else 0,
    }


def _moment(network: Network, moment: Moment) -> dict[str, object]:
    values = network.values
    return {
        "step": moment.step,
        "live_bytes": network.steps[moment.step].live_bytes,
        "live": [values[value].name for value in moment.live],
        "counters": {values[value].name: count for value, count in moment.counters.items()},
        "released": [values[value].name for value in moment.released],
        "free_bytes": sum(box.size_bytes for box in moment.free),
        "free": [_free(box) for box in moment.free],
    }


def _free(box: FreeBox) -> dict[str, object]:
    return {
        "offset_bytes": box.offset_bytes,
        "size_bytes": box.size_bytes,
        "last": list(box.last),
    }
