"""Reads traces in any supported form."""

from pathlib import Path

from tightship.trace.events import Trace, read_trace
from tightship.trace.rmm_log import read_rmm_log
from tightship.trace.torch_snapshot import read_snapshot


def read_any_trace(path: Path) -> Trace:
    """Read a trace by the suffix of its file: `.csv`, `.pickle`, `.pkl`, otherwise JSON.

    Raises:
        FormatError: The file holds no trace.
        OSError: The file cannot be read.
    """
    if path.suffix == ".csv":
        return read_rmm_log(path)
    if path.suffix in (".pickle", ".pkl"):
        return read_snapshot(path)
    return read_trace(path)
