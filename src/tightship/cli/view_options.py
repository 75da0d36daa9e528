"""Defines the options of `tightship view` beside those of every model."""

import argparse

from tightship.cli.argument_types import count
from tightship.cli.plan_options import add_old_shape


def add_view_options(command: argparse.ArgumentParser) -> None:
    """Add what a page shows beside one plan, and where it is written."""
    command.add_argument(
        "--diff",
        metavar="OLD",
        help="draw the plan over an older one, a model or a plan that `plan -o plan.json` wrote",
    )
    add_old_shape(command, "MODEL")
    command.add_argument(
        "--length",
        type=_lengths,
        metavar="NAME=N,N,...",
        help="lengths of an open dimension to choose from in the page (default: the first one's, "
        "doubled three times; `NAME=` for none)",
    )
    command.add_argument(
        "--measured",
        metavar="RUN.json",
        help="draw what was measured too: the output of `run --profile --json`, or a trace of "
        "`run --trace`",
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help=".html or .svg (default plan.html, of a graph graph.html)",
    )
    add_graph(command)
    command.add_argument("--open", action="store_true", help="open it in a browser")
    command.add_argument(
        "--json",
        action="store_true",
        help="print the plan as JSON, of a graph its nodes, counters and free boxes; draws only "
        "with `-o`",
    )


def add_graph(command: argparse.ArgumentParser) -> None:
    """Add the choice to draw the network of a plan instead of its arena."""
    command.add_argument(
        "--graph",
        action="store_true",
        help="draw the network, its nodes coloured by the bytes of the arena that they hold",
    )
    command.add_argument(
        "--step",
        type=step,
        metavar="N",
        help="with `--graph`, draw the state at a step: readers that wait, and free memory",
    )


def step(text: str) -> int:
    """Read the index of a step."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"`{text}` is not a step; write a whole number from 0 on.")
    return int(text)


def add_cost_output(command: argparse.ArgumentParser) -> None:
    """Add where `tightship cost` draws what."""
    command.add_argument("-o", "--output", metavar="OUT", help="draw the arena: .html or .svg")
    add_graph(command)
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _lengths(text: str) -> tuple[str, list[int]]:
    """Read a dimension's name and lengths: `batch=1,4,16`, or `batch=` for none."""
    name, separator, given = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a dimension and its lengths; write NAME=1,4,16."
        )
    return name, sorted({count(each) for each in given.split(",")}) if given else []
