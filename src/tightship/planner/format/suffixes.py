"""Suffixes of files of buffers, known without the modules that read them."""

from pathlib import Path

SUFFIXES = (".csv", ".json", ".jsonl", ".tflite")
"""Suffixes of files that hold buffers."""


def holds_buffers(path: Path) -> bool:
    """Whether the suffix of a file says that it holds buffers rather than a model to lower."""
    return path.suffix in SUFFIXES
