"""Runs a command: errors become one line on standard error and an exit code."""

import argparse
import gc
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TextIO

from tightship._core import expect_leaks
from tightship.cli.arguments import COMMANDS, parser
from tightship.errors import DeadlineError, InputError, TightshipError
from tightship.view.text import printable
from tightship_start import DOES_NOT_FIT, lacks_memory, memory_lacking


def resnet50() -> Path:
    """Return the path of the ResNet-50 in the onnx package, with real sizes and constant weights.

    Raises:
        InputError: The onnx package has no such file.
    """
    spec = find_spec("onnx")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    path = folder / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    if not path.is_file():
        raise InputError("The onnx package has no ResNet-50 here; name a model to run.")
    return path


FITS = 0
BAD_INPUT = 2
UNDECIDED = 3
FAULT = 70
"""A defect of Tightship (EX_SOFTWARE of the system's exit codes); 1 would mean: does not fit."""
INTERRUPTED = 130

COLLECT_AFTER = 400_000
"""New objects after which garbage is collected: a graph has many objects, but few cycles."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        0 done or fits, 1 proved not to fit, or the system had too little memory, 2 bad usage or
        file, 3 undecided within the budget, or ended by `--timeout`.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            code = _run(_parsed(arguments))
        sys.stdout.flush()
    except SystemExit:  # argparse has printed the help, or an error about the arguments
        _drop_what_has_no_room()
        raise
    except BrokenPipeError:
        _close_quietly(sys.stdout)
        return FITS
    except KeyboardInterrupt:
        return INTERRUPTED
    except (TightshipError, OSError, MemoryError) as error:
        with suppress(OSError):  # standard error may be full; the exit code is still returned
            print(f"tightship: {printable(_text(error))}", file=sys.stderr)
        _drop_what_has_no_room()
        return _code(error)
    return code


def command_line() -> int:
    """Run `main` in a process of its own, where garbage is collected rarely, and not at the end."""
    gc.set_threshold(COLLECT_AFTER)
    try:
        code = main()
    except Exception as error:  # noqa: BLE001 - printed whole, with the exit code of a defect
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
    """Parse the arguments; a command without a model gets the sample model as `file`.

    Raises:
        SystemExit: Help was requested, there are no arguments, or they are invalid.
        InputError: No model was named, and the onnx package has no sample model.
    """
    given = sys.argv[1:] if arguments is None else arguments
    top = parser(given[0] if given and given[0] in COMMANDS else None)
    if not given:
        top.print_help(sys.stderr)
        top.exit(2)
    options, unknown = top.parse_known_args(given)
    if "texts" in options and not any(map(_is_option, unknown)):
        options.texts, unknown = [*options.texts, *unknown], []  # behind options, argparse misses
    if unknown:
        options.refuse(f"unrecognized arguments: {' '.join(unknown)}")
    is_named = getattr(options, "diff", None) is not None  # both models, in another option
    if "file" in options and options.file is None and not is_named:
        options.file = str(resnet50())
    return options


def _is_option(text: str) -> bool:
    return text.startswith("-") and text != "-"


def _run(options: argparse.Namespace) -> int:
    """Run the chosen command; each branch imports only the modules of its command."""
    match options.command:
        case "cost":
            from tightship.cli.cost_command import run
        case "plan":
            from tightship.cli.plan_command import run
        case "place":
            from tightship.cli.place_command import run
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


def _run_texts(options: argparse.Namespace) -> int:
    """Run a command of a language model."""
    if options.command == "embed":
        from tightship.cli.embed_command import run
    elif options.command == "chat":
        from tightship.cli.chat_command import run
    else:
        from tightship.cli.generate_command import run
    return run(options)


def _run_several(options: argparse.Namespace) -> int:
    """Run a command that concerns several processes, or many files."""
    match options.command:
        case "chat" | "embed" | "generate":
            return _run_texts(options)
        case "budget":
            from tightship.cli.budget_command import run
        case "cache":
            from tightship.cli.cache_command import run
        case "exec":
            from tightship.cli.exec_command import run
        case "cluster":
            from tightship.cli.cluster_command import run
        case "pools":
            from tightship.cli.pools_command import run
        case "sample":
            from tightship.cli.sample_command import run
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
    return f"{where}{str(error.strerror or error).rstrip('.')}."


def _code(error: TightshipError | OSError | MemoryError) -> int:
    """Return the exit code of an error; a driver's refusal has the code of its cause."""
    if lacks_memory(error):
        return DOES_NOT_FIT
    return UNDECIDED if isinstance(error, DeadlineError) else BAD_INPUT


def _drop_what_has_no_room() -> None:
    """Discard text that a standard stream cannot take, so that a flush at exit does not fail."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            _close_quietly(stream)


def _close_quietly(stream: TextIO) -> None:
    """Redirect a stream to the null device, so that flushing it at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
