"""Defines the options of `tightship plan` beside those of every model."""

import argparse

from tightship.cli.argument_types import lengths, shape, sizes
from tightship.cli.buffer_options import add_buffer_options
from tightship.cli.context_arguments import add_context


def add_plan_options(command: argparse.ArgumentParser) -> None:
    """Add what a plan is divided by, compared with and written to."""
    add_buffer_options(command, is_shown=False)  # `plan` placed buffers too, in earlier versions
    command.add_argument(
        "--split",
        type=sizes,
        metavar="N,N,...",
        help="cut the model into stages for nodes of this memory, with least bytes across cuts",
    )
    add_context(
        command,
        "plan sessions of a decoder with caches of so many tokens; `-o` then draws peaks "
        "(.html, .svg)",
    )
    command.add_argument(
        "--sessions",
        type=lengths,
        metavar="N,N,...",
        help="numbers of sessions to plan for, with `--context` (default: 1); with `--max-memory` "
        "alone, their largest contexts",
    )
    _difference(command)
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write the plan (.csv, .json, .txt), or draw it (.html, .svg)",
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _difference(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--diff",
        nargs=2,
        metavar=("OLD", "NEW"),
        help="compare two plans instead: each a model, or a plan that `-o plan.json` wrote",
    )
    add_old_shape(command, "NEW")
    command.add_argument(
        "--markdown",
        action="store_true",
        help="with `--diff`, print Markdown, as for a pull request",
    )


def add_old_shape(command: argparse.ArgumentParser, new: str) -> None:
    """Add the option for shapes of the older model; `new` names the other one in its help."""
    command.add_argument(
        "--old-shape",
        type=shape,
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help=f"with `--diff`, shape of OLD where it is another than that of {new}; may be repeated",
    )
