"""Writes text and JSON to standard output, in the terminal's encoding."""

import json
import os
import sys
from collections.abc import Mapping
from typing import TextIO

from tightship.view.text import fit_encoding


def show(text: str) -> None:
    """Print text, and replace characters that the terminal's encoding lacks."""
    print(fit_encoding(text, sys.stdout.encoding or "ascii"), end="")


def show_json(values: Mapping[str, object]) -> None:
    """Print JSON values."""
    print(json.dumps(dict(values), indent=1))


def wants_bold() -> bool:
    """Whether standard output is a terminal that shows emphasis."""
    return obeys(sys.stdout) and not os.environ.get("NO_COLOR")


def obeys(stream: TextIO) -> bool:
    """Whether a stream is a terminal that supports escape sequences."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"
