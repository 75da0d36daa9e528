"""Implements `tightship chat`: a conversation with a model, line by line."""

import argparse
import sys
from typing import Any

from tightship.cli.argument_types import max_memory
from tightship.cli.opened_session import Opened, check_template, opened
from tightship.cli.output import show
from tightship.errors import CapacityError, InputError

ENDINGS = ("/bye", "/exit", "/quit")
"""Lines that end a chat; the end of the input does, too."""
ANEW = "/reset"


def run(options: argparse.Namespace) -> int:
    """Answer lines until the input ends; Ctrl-C ends an answer."""
    system = [] if options.system is None else [{"role": "system", "content": options.system}]
    with opened(options, max_memory(options)) as found:
        check_template(found, options.model)
        if sys.stdin.isatty():
            show(f"{options.model}, {found.session.context} tokens; {ANEW} begins anew, Ctrl-C ends"
                 f" an answer, Ctrl-D or {ENDINGS[0]} the chat\n")  # fmt: skip
        messages = list(system)
        while (line := _line()) is not None:
            if line.strip() == ANEW:
                messages = list(system)
            elif line.strip():
                _answer(found, messages, line)
    return 0


def _line() -> str | None:
    """Return the next line; None at the end."""
    try:
        if sys.stdin.isatty():
            import readline  # noqa: F401  input() edits lines with it
        line = input("> " if sys.stdin.isatty() else "")
    except EOFError:
        return None
    return None if line.strip() in ENDINGS else line


def _answer(found: Opened, messages: list[dict[str, Any]], line: str) -> None:
    """Print the answer to a line, and add both to the messages."""
    messages.append({"role": "user", "content": line})
    said = ""
    try:
        for piece in found.session.generate(messages, **found.answer):
            said += piece
            show(piece)
            sys.stdout.flush()
    except KeyboardInterrupt:
        show(" [ended]")
    except (CapacityError, InputError) as error:
        messages.pop()
        show(f"{error} {ANEW} begins anew.\n")
        return
    show("\n")
    messages.append({"role": "assistant", "content": said})
