"""Options of the commands that start a driver, or ask one."""

import argparse

from tightship.cli.words import count

SOCKET = "driver.sock in this user's folder for running programs"


def add_serve(command: argparse.ArgumentParser, model: str) -> None:
    """Of `tightship serve`; `model` says what a model is."""
    command.add_argument(
        "models", nargs="*", metavar="MODEL|DIR", help=f"{model}; or a folder of them"
    )
    command.add_argument("--socket", metavar="PATH", help=f"where to listen; by default {SOCKET}")
    command.add_argument("--threads", type=count, metavar="N", help="executions at once (1)")


def add_pools(command: argparse.ArgumentParser) -> None:
    """Of `tightship pools`."""
    command.add_argument(
        "--socket", metavar="PATH", help=f"where the driver listens; by default {SOCKET}"
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")
