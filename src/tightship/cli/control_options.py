"""Defines options of `tightship serve` about a repository in Triton's layout."""

import argparse

from tightship.cli.argument_types import seconds

POLL_S = 15.0
"""Default of Triton between two looks for changes."""


def add_control(command: argparse.ArgumentParser) -> None:
    """Add the options, which have Triton's names."""
    command.add_argument(
        "--model-repository",
        action="append",
        default=[],
        metavar="DIR",
        help="serve the models of a folder in Triton's layout: NAME/config.pbtxt and "
        "NAME/VERSION/model.onnx; may be repeated",
    )
    command.add_argument(
        "--model-control-mode",
        choices=("none", "poll", "explicit"),
        help="what loads and unloads models: only the start (none), changes of their files (poll), "
        "or the calls of clients (explicit); default none with a model repository, and otherwise "
        "all models at the start, and later the calls of clients",
    )
    command.add_argument(
        "--repository-poll-secs",
        type=seconds,
        metavar="SECONDS",
        help=f"time between two looks for changes with `--model-control-mode poll` (default "
        f"{POLL_S:g})",
    )
    command.add_argument(
        "--load-model",
        action="append",
        default=[],
        metavar="NAME",
        help="model to load at the start with `--model-control-mode explicit`, * for all; may be "
        "repeated",
    )
