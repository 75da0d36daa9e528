"""The command line: parse, call, print."""

from tightship.cli.main import main

__all__ = ["main"]
