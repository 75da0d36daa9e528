"""The command line: parse, call, print."""

from tightship.cli.main import command_line, main

__all__ = ["command_line", "main"]
