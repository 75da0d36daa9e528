"""Defines the arguments of commands for sessions of decoders."""

import argparse

from tightship.cli.argument_types import lengths


def add_context(command: argparse.ArgumentParser, what: str) -> None:
    """Add the tokens of sessions, and the type of their caches.

    Args:
        command: Parser of the command.
        what: Help for the tokens.
    """
    command.add_argument("--context", type=lengths, metavar="4k,...", help=what)
    command.add_argument(
        "--cache",
        metavar="TYPE",
        help="type that sessions round their caches to, float16, bfloat16 or int8 (default: the "
        "model's)",
    )
