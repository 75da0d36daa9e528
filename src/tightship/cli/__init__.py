"""The command line: parses arguments, calls the library, prints results."""

from tightship.cli.main import main

__all__ = ["main"]
