"""Prepared models taken apart and put together again, with checksums that are right."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tightship
from tests import decoders
from tests.small_models import dense
from tightship.engine.stored.container import FIELDS, PAGE_BYTES, Sections, header


@dataclass
class Parts:
    """Parts of a file."""

    weights: bytes
    text: Any
    recipes: bytes

    def assembled(self) -> bytes:
        """The file of these parts."""
        text = json.dumps(self.text, separators=(",", ":")).encode()
        program = text + self.recipes
        sections = Sections(len(self.weights), len(text), len(self.recipes))
        return header(sections, program) + self.weights + program


def parts_of(content: bytes) -> Parts:
    """The parts of a file."""
    weights, start, text, recipes = FIELDS.unpack(content[: FIELDS.size])[4:8]
    return Parts(
        content[PAGE_BYTES : PAGE_BYTES + weights],
        json.loads(content[start : start + text]),
        content[start + text : start + text + recipes],
    )


def dense_file(folder: Path) -> Path:
    """A small prepared model."""
    path = folder / "dense.tship"
    tightship.prepare(dense(4)[0], path)
    return path


def decoder_file(folder: Path, context: Sequence[int] = (16, 32)) -> Path:
    """A small prepared decoder, with programs for sessions of which 4 tokens run at once."""
    path = folder / "decoder.tship"
    tightship.prepare(decoders.llama(decoders.Size(layers=1)), path, context=context, chunk=4)
    return path


def changed_part(parts: Parts, index: int, change: Callable[[Any], object]) -> Parts:
    """The same file with another description of programs of sessions, at the end of the recipes."""
    row = parts.text["sessions"][index]
    described = json.loads(parts.recipes[row[1] : row[1] + row[2]])
    change(described)
    text = json.dumps(described, separators=(",", ":")).encode()
    row[1:] = [len(parts.recipes), len(text)]
    return Parts(parts.weights, parts.text, parts.recipes + text)
