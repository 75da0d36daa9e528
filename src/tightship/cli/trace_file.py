"""Traces in whatever form a file has."""

from pathlib import Path

from tightship.trace.events import Trace, read_trace
from tightship.trace.rmm_log import read_rmm_log
from tightship.trace.torch_snapshot import read_snapshot


def read_any_trace(path: Path) -> Trace:
    """Read a trace by the end of the file's name: `.csv`, `.pickle`, `.pkl`, else JSON.

    Raises:
        FormatError, OSError: There is no trace in the file.
    """
    if path.suffix == ".csv":
        return read_rmm_log(path)
    if path.suffix in (".pickle", ".pkl"):
        return read_snapshot(path)
    return read_trace(path)
