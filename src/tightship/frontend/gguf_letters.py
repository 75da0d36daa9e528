"""The letters that a GGUF file begins with."""

import os
from pathlib import Path

MAGIC = b"GGUF"


def begins_as_gguf(model: str | os.PathLike[str] | bytes) -> bool:
    """Whether a file, or the bytes of one, begin with the letters of a GGUF file."""
    if isinstance(model, bytes):
        return model.startswith(MAGIC)
    try:
        with Path(model).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False
