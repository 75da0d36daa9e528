"""Defines options of the commands that place buffers, or check where they lie."""

import argparse

from tightship.cli.argument_types import bank, count, seconds, size

BUFFERS = "minimalloc's CSV, a plan (.json), a trace (.json, .jsonl) or a .tflite"


def add_place(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship place`."""
    command.add_argument("file", metavar="BUFFERS", help=BUFFERS)
    add_buffer_options(command)
    command.add_argument(
        "--bank",
        type=bank,
        action="append",
        default=[],
        metavar="NAME=256KiB",
        help="place in banks of these sizes, each with offsets from 0; the earlier a bank is "
        "named, the more of the bytes it gets; may be repeated",
    )
    command.add_argument(
        "--time-limit",
        type=seconds,
        metavar="SECONDS",
        help="search for this long, or until a plan is proved best or fits (default: an effort "
        "that takes some seconds)",
    )
    command.add_argument(
        "--threads", type=count, metavar="N", help="threads that search at once (default 1)"
    )
    command.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="write the plan (.csv, .json, a C header .h; for a .tflite also .tflite), or draw it "
        "(.html, .svg)",
    )
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")


def add_buffer_options(command: argparse.ArgumentParser, *, is_shown: bool = True) -> None:
    """Add the options of placing buffers; the help lists them if they are shown."""
    command.set_defaults(bank=[], time_limit=None)  # options of `place` alone

    def described(text: str) -> str:
        return text if is_shown else argparse.SUPPRESS

    command.add_argument(
        "--capacity",
        type=size,
        metavar="N",
        help=described("bytes that the plan must fit (default: the smallest peak)"),
    )
    command.add_argument(
        "--minimize",
        action="store_true",
        help=described("look for the smallest peak, even if a capacity is given"),
    )
    command.add_argument(
        "--order",
        action="append",
        default=[],
        metavar="PLAN",
        help=described(
            "stack the buffers as in this plan of the same buffers with other sizes, in about a "
            "microsecond for each; may be repeated, and the smallest result wins"
        ),
    )


def add_verify(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship verify`."""
    command.add_argument(
        "file",
        metavar="PLAN",
        help="a CSV with a column `offset`, a plan (.json) of buffers or of a model, .tflite, or a "
        "prepared model (.tship)",
    )
    command.add_argument("--capacity", type=size, metavar="N", help="bytes the plan must fit")
    command.add_argument("--json", action="store_true", help="print JSON, amounts in bytes")
