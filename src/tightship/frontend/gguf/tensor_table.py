"""The table of tensors in a GGUF header."""

from math import prod
from typing import NamedTuple

from tightship.frontend.gguf.block_types import BLOCK_TYPES, BlockType
from tightship.frontend.gguf.cursor import U64, Cursor

NAME_BYTES_MAX = 64
RANK_MAX = 4
TENSORS_MAX = 1 << 16
"""Most tensors of a file."""
TENSOR_BYTES_MIN = 24
"""Bytes of a tensor's row in the table: its name's length, rank, type and offset."""
BYTES_MAX = 1 << 48
"""Most bytes of a tensor, and of what lies before it."""


class StoredTensor(NamedTuple):
    """Tensor of a file.

    Attributes:
        name: Name of the tensor.
        type: Type of its elements.
        shape: Lengths, the slowest first.
        offset_bytes: First byte in the file; from the start of the data while the table is read.
    """

    name: str
    type: BlockType
    shape: tuple[int, ...]
    offset_bytes: int

    @property
    def size_bytes(self) -> int:
        """Bytes that it takes."""
        return prod(self.shape) // self.type.elements * self.type.size_bytes

    @property
    def end_bytes(self) -> int:
        """First byte behind it."""
        return self.offset_bytes + self.size_bytes


def read_table(cursor: Cursor, count: int) -> list[StoredTensor]:
    """Read the rows of a table, whose offsets count from the start of the data.

    Raises:
        FormatError: A row has an unknown type or an impossible size, or two have one name.
    """
    found: dict[str, StoredTensor] = {}
    for index in range(count):
        tensor = _read_row(cursor, index)
        if tensor.name in found:
            raise cursor.refusal(f"two tensors have the name `{tensor.name}`", is_cut=False)
        found[tensor.name] = tensor
    return list(found.values())


def placed(
    cursor: Cursor, table: list[StoredTensor], start: int, alignment: int
) -> dict[str, StoredTensor]:
    """Return the tensors of a table by name, with offsets in the file.

    Args:
        cursor: Cursor behind the table.
        table: Tensors with offsets from the start of the data.
        start: First byte of the data.
        alignment: Number of which offsets are multiples.

    Raises:
        FormatError: An offset is not a multiple of the alignment, or two tensors overlap.
    """
    end, before = 0, ""
    for tensor in sorted(table, key=lambda each: (each.offset_bytes, each.end_bytes)):
        if tensor.offset_bytes % alignment:
            raise cursor.refusal(
                f"the offset of tensor `{tensor.name}` is {tensor.offset_bytes}; it must be a "
                f"multiple of {alignment}", is_cut=False,
            )  # fmt: skip
        if tensor.offset_bytes < end:
            raise cursor.refusal(
                f"tensor `{tensor.name}` at offset {tensor.offset_bytes} overlaps `{before}`, "
                f"which ends at {end}", is_cut=False,
            )  # fmt: skip
        end, before = tensor.end_bytes, tensor.name
    return {
        each.name: StoredTensor(each.name, each.type, each.shape, start + each.offset_bytes)
        for each in table
    }


def _read_row(cursor: Cursor, index: int) -> StoredTensor:
    name = cursor.text(f"the name of tensor {index}", NAME_BYTES_MAX)
    owner = f"tensor `{name}`"
    rank = cursor.u32(f"the rank of {owner}")
    if rank > RANK_MAX:
        raise cursor.refusal(f"{owner} has {rank} axes; it must have at most {RANK_MAX}",
                             is_cut=False)  # fmt: skip
    cursor.bounded(rank, U64.size, RANK_MAX, f"the rank of {owner}")
    lengths = [cursor.u64(f"the lengths of {owner}") for _ in range(rank)]
    number = cursor.u32(f"the type of {owner}")
    offset = cursor.u64(f"the offset of {owner}")
    kind = BLOCK_TYPES.get(number)
    if kind is None:
        known = ", ".join(f"{each} {known.name}" for each, known in BLOCK_TYPES.items())
        raise cursor.refusal(f"{owner} has the type {number}; types are {known}", is_cut=False)
    first = lengths[0] if lengths else 1
    if min(lengths, default=1) < 1 or first % kind.elements:
        raise cursor.refusal(
            f"{owner} has the lengths {lengths}; they must be at least 1, and the first a multiple "
            f"of {kind.elements} for {kind.name}", is_cut=False,
        )  # fmt: skip
    tensor = StoredTensor(name, kind, tuple(lengths[::-1]), offset)
    if tensor.end_bytes > BYTES_MAX or offset > BYTES_MAX:
        raise cursor.refusal(
            f"{owner} of {tensor.size_bytes} bytes begins at offset {offset}; it must end at "
            f"{BYTES_MAX} at most", is_cut=False,
        )  # fmt: skip
    return tensor
