"""Implements `tightship cluster status`: nodes of a cluster of Ray, and what runs on them."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tightship.cli.output import show, show_json
from tightship.cluster.cluster_status import status
from tightship.cluster.ray_state import connect
from tightship.quantity import format_bytes
from tightship.view.table import Column, table

ID_SHOWN = 12
"""Characters of a node's id that tell it apart."""
NODES = (
    Column("node"),
    Column("memory", number=True),
    Column("free", number=True),
    Column("processors", number=True),
    Column("free", number=True),
    Column("replicas", number=True),
    Column("planned", number=True),
    Column("measured", number=True),
)
PROCESSES = (
    Column("node"),
    Column("what"),
    Column("model"),
    Column("pid", number=True),
    Column("planned", number=True),
    Column("measured", number=True),
)


def run(options: argparse.Namespace) -> int:
    """Query a cluster and print what it holds.

    Raises:
        InputError: No cluster is running at the address.
        LibraryError: Ray is not installed.
    """
    connect(options.address)
    nodes = status()
    if options.json:
        show_json({"nodes": nodes})
    else:
        show("\n".join(lines(nodes)) + "\n")
    return 0


def lines(nodes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Describe nodes, and the processes on them, in at most 100 columns."""
    yield from table(NODES, [_node_row(node) for node in nodes])
    rows = [
        (
            node["node_id"][:ID_SHOWN],
            process["kind"],
            process["model"],
            str(process["pid"]),
            format_bytes(process["booked_bytes"]),
            format_bytes(process["pss_bytes"]),
        )
        for node in nodes
        for process in node["processes"]
    ]
    if rows:
        yield ""
        yield from table(PROCESSES, rows)


def _node_row(node: Mapping[str, Any]) -> tuple[str, ...]:
    processes = node["processes"]
    return (
        node["node_id"][:ID_SHOWN],
        format_bytes(node["memory_bytes"]),
        format_bytes(node["free_bytes"]),
        f"{node['cpus']:g}",
        f"{node['free_cpus']:g}",
        str(sum(process["kind"] == "replica" for process in processes)),
        format_bytes(sum(process["booked_bytes"] for process in processes)),
        format_bytes(sum(process["pss_bytes"] for process in processes)),
    )
