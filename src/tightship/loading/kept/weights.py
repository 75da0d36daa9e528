"""Weights of a program as JSON values that say where a GGUF file has their bytes."""

from collections.abc import Sequence

import numpy as np

from tightship.engine.program.program import PackedWeight
from tightship.engine.stored import fields
from tightship.engine.stored.fields import MalformedError
from tightship.engine.stored.read_program import DTYPES
from tightship.frontend.gguf.parts import BITS, INTEGERS, SCALES, part_of
from tightship.graph import Constant, DType, Fill, Inline, Mapped, MappedFile, size_bytes
from tightship.graph.row_by_row import RowByRow
from tightship.graph.symbolic import SymbolicConstant

INLINE_BYTES_MAX = 64 << 10
"""Most bytes of a weight that are written, rather than where the file has them."""
WRITTEN_MAX = 1 << 20
"""Most letters of all weights that are written."""
BYTES, FILL, SYMBOLIC, VALUE = "bytes", "fill", "symbolic", "value"
"""Kinds of weights besides `INTEGERS` and `SCALES`."""


def weights_json(
    weights: Sequence[PackedWeight], files: Sequence[MappedFile]
) -> list[object] | None:
    """Describe weights; None if one is not in these files, and is not small either.

    Args:
        weights: Weights of a program.
        files: The model's files.
    """
    places: dict[object, int] = {file.facts: place for place, file in enumerate(files)}
    rows = [_row(weight, places) for weight in weights]
    if None in rows:
        return None
    written = sum(len(str(row[-1])) for row in rows if row is not None)
    return list(rows) if written <= WRITTEN_MAX else None


def _row(weight: PackedWeight, places: dict[object, int]) -> list[object] | None:
    """Describe a weight: its name, its kind, the type and shape of elements, and what makes them.

    A layout of the library is not described.
    """
    constant = weight.constant
    size = size_bytes(constant.dtype, constant.shape)
    if weight.source is not None or weight.desc is not None or weight.size_bytes != size:
        return None
    if isinstance(constant, RowByRow):
        part, name = constant.recipe if isinstance(constant.recipe, tuple) else ("", "")
        return _row_of_file(weight.name, constant.stored, places, part, name)
    if isinstance(constant, Mapped):
        return _row_of_file(weight.name, constant, places, BYTES, "")
    said = [weight.name, "", constant.dtype.value, list(map(int, constant.shape))]
    if isinstance(constant, Fill):
        return [said[0], FILL, *said[2:], constant.value.tobytes().hex()]
    if size > INLINE_BYTES_MAX:
        return None
    kind = SYMBOLIC if isinstance(constant, SymbolicConstant) else VALUE
    return [said[0], kind, *said[2:], np.ascontiguousarray(constant.array()).tobytes().hex()]


def _row_of_file(
    name: str, stored: Mapped, places: dict[object, int], kind: str, blocks: str
) -> list[object] | None:
    place = places.get(stored.file.facts)
    if place is None or kind not in (BYTES, INTEGERS, SCALES):
        return None
    shape = list(map(int, stored.shape))
    return [name, kind, stored.dtype.value, shape, [place, stored.offset_bytes, blocks]]


def name_of_row(row: object) -> tuple[str, str]:
    """Return the name and the kind of the weight that a row of `weights_json` describes.

    Raises:
        MalformedError: The row does not describe a weight.
    """
    name, kind, *_ = fields.items(row, 5)
    return fields.text(name), fields.text(kind)


def weights_of(rows: object, files: Sequence[MappedFile]) -> list[PackedWeight]:
    """Return the weights that `weights_json` describes.

    Raises:
        MalformedError: The rows do not describe weights of these files.
    """
    return [_weight(row, files) for row in fields.items(rows)]


def _weight(row: object, files: Sequence[MappedFile]) -> PackedWeight:
    name, kind, dtype, shape, what = fields.items(row, 5)
    named = fields.text(dtype)
    if named not in DTYPES:
        raise MalformedError(f"`{named:.40}` is not a type of elements")
    constant = _constant(fields.text(kind), DTYPES[named], fields.integers(shape), what, files)
    return PackedWeight(fields.text(name), constant, size_bytes(constant.dtype, constant.shape))


def _constant(
    kind: str, dtype: DType, shape: tuple[int, ...], what: object, files: Sequence[MappedFile]
) -> Constant:
    if kind in (BYTES, INTEGERS, SCALES):
        return _of_file(kind, dtype, shape, what, files)
    try:
        raw = bytes.fromhex(fields.text(what))
        found = np.frombuffer(raw, dtype.numpy)
        found = found.reshape(() if kind == FILL else shape)
    except ValueError:
        raise MalformedError("a weight does not have the bytes of its shape") from None
    if kind == FILL:
        return Fill(found, shape)
    if kind == SYMBOLIC:
        return SymbolicConstant(dtype, found)
    if kind != VALUE:
        raise MalformedError(f"`{kind:.40}` is not a kind of weights")
    return Inline(found)


def _of_file(
    kind: str, dtype: DType, shape: tuple[int, ...], what: object, files: Sequence[MappedFile]
) -> Constant:
    place, offset, blocks = fields.items(what, 3)
    file = files[fields.index(place, len(files))]
    stored = Mapped(file, fields.integer(offset), dtype, shape)
    if stored.offset_bytes + size_bytes(dtype, shape) > file.size_bytes:
        raise MalformedError("a weight is not within its file")
    if kind == BYTES:
        return stored
    name = fields.text(blocks)
    if dtype is not DType.UINT8 or len(shape) != 2 or name not in BITS:
        raise MalformedError("a weight is not a matrix of blocks")
    return part_of(stored, kind, name)
