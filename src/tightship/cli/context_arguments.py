"""Defines the arguments of commands for sessions of decoders."""

import argparse

from tightship.cli.argument_types import add_activations, add_cache, lengths


def add_context(command: argparse.ArgumentParser, what: str) -> None:
    """Add the tokens of sessions, and the types of their caches and activations.

    Args:
        command: Parser of the command.
        what: Help for the tokens.
    """
    command.add_argument("--context", type=lengths, metavar="4k,...", help=what)
    add_cache(command)
    add_activations(command)
