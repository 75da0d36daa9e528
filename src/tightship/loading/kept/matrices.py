"""Matrices of a GGUF file taken apart once, in a file that all processes of a user map.

A block of the file has its scale before its integers; kernels read both apart. A process that took
them apart for itself would hold a copy of its own.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tightship.engine.program.program import PackedWeight
from tightship.engine.program.schedule import ALIGNMENT
from tightship.engine.stored import fields
from tightship.engine.stored.container import PAGE_BYTES, Sections, header, open_container
from tightship.engine.stored.fields import MalformedError
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.errors import FormatError
from tightship.graph import Mapped
from tightship.graph.row_by_row import RowByRow

Key = tuple[str, int, str]
"""Name of the file that has the blocks of a matrix, where they begin, and the part of them."""
Parts = Mapping[Key, Mapped]
PARTS_BYTES_MIN = 1 << 20
"""Least bytes of a model's parts that pay for a file."""
FILES, PARTS = "files", "parts"
"""Members of the description."""


def taken_apart(weights: Iterable[PackedWeight]) -> list[PackedWeight]:
    """List the weights that are parts of matrices, each once; none if a file does not pay."""
    found = {_key(weight.constant): weight for weight in weights
             if isinstance(weight.constant, RowByRow) and weight.desc is None}  # fmt: skip
    is_worth = sum(weight.size_bytes for weight in found.values()) >= PARTS_BYTES_MIN
    return list(found.values()) if is_worth else []


def parts_bytes(weights: Sequence[PackedWeight]) -> int:
    """Return about the bytes of a file with these weights."""
    return PAGE_BYTES + aligned_offsets(weights)[1]


def write_parts(path: Path, weights: Sequence[PackedWeight], files: Sequence[object]) -> None:
    """Write parts of matrices one after another; the file is whole once this returns.

    Args:
        path: Path of the file; has an unknown part of the content if this fails.
        weights: Parts, as `taken_apart` lists them.
        files: Names and facts of the model's files, as JSON values.

    Raises:
        OSError: The file cannot be written.
    """
    offsets, size = aligned_offsets(weights)
    size = -(-(size + ALIGNMENT) // PAGE_BYTES) * PAGE_BYTES  # kernels read behind the last, too
    rows = []
    with path.open("wb") as file:
        for weight, offset in zip(weights, offsets, strict=True):
            assert isinstance(weight.constant, RowByRow)
            file.seek(PAGE_BYTES + offset)
            for _, part in weight.constant.pieces():
                file.write(part.data)
            rows.append([*_key(weight.constant), PAGE_BYTES + offset, weight.size_bytes])
        text = json.dumps({FILES: files, PARTS: rows}, separators=(",", ":")).encode()
        file.seek(PAGE_BYTES + size)
        file.write(text)
        file.seek(0)
        file.write(header(Sections(size, len(text), 0), text))
        file.flush()
        os.fsync(file.fileno())  # no checksum of the parts tells whether they reached the disk


def read_parts(path: Path, weights: Sequence[PackedWeight], files: Sequence[object]) -> Parts:
    """Map the parts of matrices that a file has.

    Args:
        path: Path of a file that `write_parts` has written.
        weights: Parts that it must have.
        files: Names and facts of the model's files, as JSON values.

    Raises:
        FormatError: The file is damaged, is of other files, or lacks one.
        OSError: It cannot be read.
    """
    container = open_container(os.fspath(path))
    container.file.is_run = True
    rows: dict[Key, tuple[int, int]] = {}
    try:
        of, parts = fields.record(json.loads(container.text), FILES, PARTS)
        for row in fields.items(parts):
            name, first, part, start, size = fields.items(row, 5)
            key = fields.text(name), fields.integer(first), fields.text(part)
            rows[key] = fields.integer(start), fields.integer(size)
    except (MalformedError, ValueError) as error:
        raise FormatError(f"`{path}` is damaged: {error}.") from None
    if of != list(files):
        raise FormatError(f"`{path}` is of files that have changed.")
    found: dict[Key, Mapped] = {}
    for weight in weights:
        constant = weight.constant
        start, size = rows.get(_key(constant), (0, 0))
        if size != weight.size_bytes or start + size + ALIGNMENT > container.file.size_bytes:
            raise FormatError(f"`{path}` lacks a part of `{weight.name}`.")
        found[_key(constant)] = Mapped(container.file, start, constant.dtype, constant.shape)
    return found


def mapped_parts(weights: Iterable[PackedWeight], parts: Parts) -> list[PackedWeight]:
    """Return weights with the parts of matrices where a file has them."""
    return [_mapped(weight, parts) for weight in weights]


def _mapped(weight: PackedWeight, parts: Parts) -> PackedWeight:
    constant = weight.constant
    made = parts.get(_key(constant)) if isinstance(constant, RowByRow) else None
    if made is None or not isinstance(constant, RowByRow):
        return weight
    return weight._replace(constant=constant.with_made(made))


_base_name = lru_cache(os.path.basename)  # some files have all parts


def _key(constant: object) -> Key:
    assert isinstance(constant, RowByRow)
    stored, recipe = constant.stored, constant.recipe
    part = str(recipe[0]) if isinstance(recipe, tuple) else str(recipe)
    return _base_name(os.fspath(stored.file.path)), stored.offset_bytes, part
