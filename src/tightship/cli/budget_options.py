"""Defines the options of `tightship budget`."""

import argparse

FILE = "tightship.toml, or pyproject.toml with `tool.tightship.budget` (default: those found here)"
ISAS = ("avx2", "avx512_core", "avx512_core_amx")


def add_budget(command: argparse.ArgumentParser) -> None:
    """Add the commands of `tightship budget`."""
    command.description = "Hold the models of a project to budgets of memory."
    commands = command.add_subparsers(title="commands", required=True, metavar="COMMAND")
    check = _command(
        commands,
        "check",
        "plan the models that have a budget, and list which exceed it",
        "0 all fit, 1 a budget is exceeded, 2 bad usage or file",
    )
    lock = _command(
        commands,
        "lock",
        "write the planned bytes of each model by part, for review",
        "0 written, 1 with `--check` the file says otherwise, 2 bad usage or file",
    )
    lock.add_argument(
        "-o", "--output", metavar="OUT", help="file to write (default: tightship.lock beside FILE)"
    )
    lock.add_argument(
        "--check", action="store_true", help="write nothing, and list what the file says otherwise"
    )
    check.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    what: str,
    codes: str,
) -> argparse.ArgumentParser:
    found = commands.add_parser(
        name,
        help=what,
        description=what[0].upper() + what[1:] + ".",
        epilog=f"Exit codes: {codes}.",
    )
    found.set_defaults(command="budget", action=name, refuse=found.error)
    found.add_argument("budgets", metavar="FILE", nargs="?", help=FILE)
    found.add_argument(
        "--isa",
        choices=ISAS,
        help="instruction set to plan for, that of the machine or a lower one (default: that of "
        "FILE, or avx2)",
    )
    return found
