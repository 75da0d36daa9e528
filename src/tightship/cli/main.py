"""`tightship COMMAND ...`: errors become one line on standard error and an exit code."""

import argparse
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from tightship._core import expect_leaks
from tightship.cli.arguments import parser
from tightship.cli.sample import resnet50
from tightship.errors import DeadlineError, TightshipError
from tightship.view.text import printable
from tightship_start import DOES_NOT_FIT, lacks_memory, memory_lacking

FITS = 0
BAD_INPUT = 2
UNDECIDED = 3
FAULT = 70
"""A fault of Tightship's own, by the system's table of exit codes; 1 would say: does not fit."""
INTERRUPTED = 130

COLLECT_AFTER = 100_000
"""Objects to be made before cycles are looked for: a graph has many, and few of them."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done or fits, 1 proved not to fit, or the system had too little memory, 2 bad usage or
        file, 3 undecided within the budget, or ended by `--timeout`.
    """
    try:
        options = _parsed(arguments)
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = _run(options)
        sys.stdout.flush()
    except SystemExit:  # help was printed, or why the arguments do not fit
        _drop_what_has_no_room()
        raise
    except BrokenPipeError:
        _close_quietly(sys.stdout)
        return FITS
    except KeyboardInterrupt:
        return INTERRUPTED
    except (TightshipError, OSError, MemoryError) as error:
        with suppress(OSError):  # standard error is full: the code says it all the same
            print(f"tightship: {printable(_text(error))}", file=sys.stderr)
        _drop_what_has_no_room()
        return _code(error)
    return code


def command_line() -> int:
    """`main` for a process of its own, which looks for cycles seldom, and not at its end."""
    gc.set_threshold(COLLECT_AFTER)
    try:
        code = main()
    except Exception as error:  # noqa: BLE001 - told whole, with a code that says nothing of models
        if lacks_memory(error):
            print(f"tightship: {printable(memory_lacking(error))}", file=sys.stderr)
            code = DOES_NOT_FIT
        else:
            traceback.print_exc()
            code = FAULT
    gc.freeze()
    expect_leaks()
    return code


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """What was asked for: `command` names the command, `file` is a model where none was named.

    Raises:
        SystemExit: Help was asked for, or nothing at all; or the arguments do not fit.
        InputError: No model was named, and the onnx package has none.
    """
    top = parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        top.print_help(sys.stderr)
        top.exit(2)
    options, unknown = top.parse_known_args(arguments)
    if unknown:
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    if "file" in options and options.file is None:
        options.file = str(resnet50())
    return options


def _run(options: argparse.Namespace) -> int:
    """Run the command that was chosen; what only others need is not imported."""
    match options.command:
        case "cost":
            from tightship.cli.cost_command import run
        case "plan":
            from tightship.cli.plan_command import run
        case "prepare":
            from tightship.cli.prepare_command import run
        case "profile":
            from tightship.cli.resource_command import run
        case "replay":
            from tightship.cli.replay_command import run
        case "run":
            from tightship.cli.run_command import run
        case "verify":
            from tightship.cli.verify_command import run
        case "view":
            from tightship.cli.view_command import run
        case _:
            return _run_several(options)
    return run(options)


def _run_several(options: argparse.Namespace) -> int:
    """Run a command that is about several processes."""
    match options.command:
        case "cache":
            from tightship.cli.cache_command import run
        case "pools":
            from tightship.cli.pools_command import run
        case "serve":
            from tightship.cli.serve_command import run
        case _:
            from tightship.cli.share_command import run
    return run(options)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    print(f"tightship: {printable(str(message))}", file=sys.stderr)


def _text(error: TightshipError | OSError | MemoryError) -> str:
    if isinstance(error, TightshipError):
        return str(error)
    if isinstance(error, MemoryError):
        return memory_lacking(error)
    where = "" if error.filename is None else f"`{error.filename}`: "
    return f"{where}{error.strerror}."


def _code(error: TightshipError | OSError | MemoryError) -> int:
    """A refusal by a face of the driver has the code of what it was refused for."""
    if lacks_memory(error):
        return DOES_NOT_FIT
    return UNDECIDED if isinstance(error, DeadlineError) else BAD_INPUT


def _drop_what_has_no_room() -> None:
    """What a standard stream does not take now it would not take at exit either."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _close_quietly(stream)


def _close_quietly(stream: TextIO) -> None:
    """What is left to flush at exit has nowhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
