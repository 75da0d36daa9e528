"""Defines the options of `tightship exec`."""

import argparse

from tightship.cli.argument_types import size


def add_exec(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship exec`."""
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="512MiB",
        help="most data (writable private memory) of each process of the program; the system "
        "refuses it more (default: no limit)",
    )
    command.add_argument(
        "-o", "--output", metavar="OUT", help="write the report here, not to standard error"
    )
    command.add_argument("--json", action="store_true", help="report in JSON, amounts in bytes")
    command.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- PROGRAM ARGUMENT...",
        help="the program and its arguments",
    )
