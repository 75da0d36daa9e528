"""Prepared models taken apart and put together again, with checksums that are right."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tightship
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
