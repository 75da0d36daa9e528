"""Options of `tightship cluster`."""

import argparse


def add_cluster(command: argparse.ArgumentParser) -> None:
    """Add the commands of `tightship cluster`."""
    command.description = "Work with clusters."
    kinds = command.add_subparsers(title="commands", required=True, metavar="COMMAND")
    found = kinds.add_parser(
        "status",
        help="show nodes, anchors, replicas and stages with planned and measured memory",
        description="Show nodes, anchors, replicas and stages with planned and measured memory.",
        epilog="Exit codes: 0 done, 2 no cluster is running.",
    )
    found.add_argument("--address", metavar="ADDRESS", help="address of the cluster (RAY_ADDRESS)")
    found.add_argument("--json", action="store_true", help="print as JSON")
    found.set_defaults(command="cluster", refuse=found.error)
