"""Says what a program held, as text or JSON, once it has ended."""

import json
import shlex
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tightship.atomic_file import write_text
from tightship.cli.held_memory import Held
from tightship.quantity import format_bytes
from tightship.view.table import Column, table
from tightship.view.text import fit_encoding, printable, shorten

NEARLY = 0.97
"""Share of a limit from which a report says that it was reached."""
_NAME_LENGTH_MAX = 60


@dataclass(frozen=True, slots=True)
class Ended:
    """A program that has ended.

    Attributes:
        program: Its name and arguments.
        returncode: Its exit code, or the negative number of the signal that ended it.
        seconds: Time that it ran.
        limit_bytes: Limit of the data of each process, or None.
        held: What it held.
    """

    program: Sequence[str]
    returncode: int
    seconds: float
    limit_bytes: int | None
    held: Held


def report(ended: Ended, output: str | None, *, is_json: bool) -> None:
    """Write the report to a file, or to standard error, which the program's output is not in.

    A file that cannot be written is named on standard error, because the exit code is the
    program's.
    """
    text = f"{json.dumps(_json(ended), indent=1)}\n" if is_json else _text(ended)
    with suppress(OSError):  # standard error may be full or closed; the exit code is still returned
        if output is None:
            sys.stderr.write(fit_encoding(text, sys.stderr.encoding or "ascii"))
            sys.stderr.flush()
            return
        try:
            write_text(Path(output), text)
        except OSError as error:
            print(f"tightship: `{printable(output)}`: {error.strerror}.", file=sys.stderr)


def _text(ended: Ended) -> str:
    held = ended.held
    name = shorten(printable(shlex.join(ended.program)), _NAME_LENGTH_MAX)
    lines = [f"{name} · {_end(ended)} after {ended.seconds:.2f} s"]
    if not held.process_count:
        return f"{lines[0]}, before it could be read\n"
    rows = [(kind, format_bytes(each.data_bytes), format_bytes(each.resident_bytes))
            for kind, each in held.kinds.items()]  # fmt: skip
    rows.append(("largest process", format_bytes(held.data_bytes),
                 format_bytes(held.resident_bytes)))  # fmt: skip
    if held.process_count > 1:
        rows.append((f"{held.process_count} processes", format_bytes(held.together_data_bytes),
                     format_bytes(held.together_resident_bytes)))  # fmt: skip
    titles = [Column("most held"), Column("data", number=True), Column("resident", number=True)]
    lines += table(titles, rows)
    if ended.limit_bytes is not None:
        lines.append(_of_limit(held.data_bytes, ended.limit_bytes))
    return "\n".join(lines) + "\n"


def _end(ended: Ended) -> str:
    if ended.returncode >= 0:
        return f"exit code {ended.returncode}"
    try:
        return f"ended by {signal.Signals(-ended.returncode).name}"
    except ValueError:  # a real-time signal has no name
        return f"ended by signal {-ended.returncode}"


def _of_limit(data_bytes: int, limit_bytes: int) -> str:
    share = f"{data_bytes / limit_bytes:.0%} of the limit of {format_bytes(limit_bytes)}"
    if data_bytes < NEARLY * limit_bytes:
        return f"{share}; requests that it refused are not in it"
    return f"{share}: the system may have refused more"


def _json(ended: Ended) -> dict[str, object]:
    held = ended.held
    return {
        "program": list(ended.program),
        "exit_code": ended.returncode if ended.returncode >= 0 else None,
        "signal": -ended.returncode if ended.returncode < 0 else None,
        "seconds": round(ended.seconds, 3),
        "limit_bytes": ended.limit_bytes,
        "peak_resident_bytes": held.resident_bytes,
        "peak_data_bytes": held.data_bytes,
        "process_count": held.process_count,
        "together_resident_bytes": held.together_resident_bytes,
        "together_data_bytes": held.together_data_bytes,
        "mapping_kinds": {
            kind: {"data_bytes": each.data_bytes, "resident_bytes": each.resident_bytes}
            for kind, each in held.kinds.items()
        },
    }
