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
        default="plan.html",
        metavar="OUT",
        help=".html or .svg (default plan.html)",
    )
    command.add_argument("--open", action="store_true", help="open it in a browser")


def _lengths(text: str) -> tuple[str, list[int]]:
    """Read a dimension's name and lengths: `batch=1,4,16`, or `batch=` for none."""
    name, separator, given = text.partition("=")
    if not name or not separator:
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a dimension and its lengths; write NAME=1,4,16."
        )
    return name, sorted({count(each) for each in given.split(",")}) if given else []
