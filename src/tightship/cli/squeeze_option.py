"""Defines the options of `tightship cost` about the training step."""

import argparse


def add_squeeze(command: argparse.ArgumentParser) -> None:
    """Add `--training`, `--precision`, `--squeeze` and `--frontier`."""
    command.add_argument(
        "--training",
        action="store_true",
        help="draw the training step, and let it decide whether `--max-memory` is kept",
    )
    command.add_argument(
        "--precision",
        choices=("float32", "bfloat16"),
        help="type that values of the training step wait for late readers in, as for "
        "`tightship.train` (default: float32)",
    )
    command.add_argument(
        "--squeeze",
        nargs="?",
        const="",
        metavar="BYTES|PERCENT",
        help="fit a training step with SGD into a budget, by reordering and recomputation",
    )
    command.add_argument(
        "--frontier",
        action="store_true",
        help="show what each budget costs in operations, for training and inference; OUT is its "
        "picture, with the plan of `--squeeze` marked",
    )
