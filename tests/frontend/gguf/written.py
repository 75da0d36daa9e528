"""Writer of GGUF files for tests, valid or not."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = {
    "u8": (0, "<B"), "i8": (1, "<b"), "u16": (2, "<H"), "i16": (3, "<h"), "u32": (4, "<I"),
    "i32": (5, "<i"), "f32": (6, "<f"), "bool": (7, "<?"), "u64": (10, "<Q"), "i64": (11, "<q"),
    "f64": (12, "<d"),
}  # fmt: skip
TYPES = {"F32": 0, "F16": 1, "Q4_0": 2, "Q4_1": 3, "Q5_0": 6, "Q5_1": 7, "Q8_0": 8, "Q4_K": 12,
         "Q5_K": 13, "Q6_K": 14, "IQ4_NL": 20, "BF16": 30}  # fmt: skip


@dataclass(frozen=True)
class Tensor:
    """Tensor of a file: name of its type, lengths with the slowest first, and bytes."""

    type: str
    shape: tuple[int, ...]
    raw: bytes

    @staticmethod
    def floats(array: NDArray[Any]) -> "Tensor":
        """Return a tensor of float32."""
        return Tensor("F32", array.shape, array.astype("<f4").tobytes())


def text(value: str | bytes) -> bytes:
    """Encode a text as its length and its bytes."""
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def value(given: Any) -> bytes:
    """Encode a value with its type; numbers become i32 or f32, unless a pair names another."""
    if isinstance(given, bytes):  # encoded already
        return given
    if isinstance(given, str):
        return struct.pack("<I", 8) + text(given)
    if isinstance(given, list):
        parts = [value(each) for each in given]
        kind = parts[0][:4] if parts else struct.pack("<I", 5)
        return struct.pack("<I", 9) + kind + struct.pack("<Q", len(parts)) + b"".join(
            part[4:] for part in parts
        )  # fmt: skip
    kind = "bool" if isinstance(given, bool) else "i32" if isinstance(given, int) else "f32"
    if isinstance(given, tuple):
        kind, given = given
    number, form = KINDS[kind]
    return struct.pack("<I", number) + struct.pack(form, given)


def pairs(fields: Mapping[str, Any]) -> bytes:
    """Encode keys and values."""
    return b"".join(text(key) + value(given) for key, given in fields.items())


def row(name: str, tensor: Tensor, offset: int) -> bytes:
    """Encode a row of the table of tensors."""
    dims = struct.pack(f"<{len(tensor.shape)}Q", *tensor.shape[::-1])
    head = text(name) + struct.pack("<I", len(tensor.shape)) + dims
    return head + struct.pack("<IQ", TYPES[tensor.type], offset)


def written(
    fields: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    *,
    version: int = 3,
    alignment: int = 32,
    offsets: Sequence[int] | None = None,
) -> bytes:
    """Write a whole file; `offsets` replaces those of the tensors."""
    rows, data = [], b""
    for index, (name, tensor) in enumerate(tensors.items()):
        data += b"\0" * (-len(data) % alignment)
        rows.append(row(name, tensor, len(data) if offsets is None else offsets[index]))
        data += tensor.raw
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(fields))
    head += pairs(fields) + b"".join(rows)
    return head + b"\0" * (-len(head) % alignment) + data


def random_blocks(kind: str, rows: int, depth: int, seed: int) -> Tensor:
    """Return a matrix of random bytes, whose elements are about 1 / sqrt(depth)."""
    random = np.random.default_rng(seed)
    if kind in ("F32", "F16", "BF16"):
        values = (random.standard_normal((rows, depth)) / depth**0.5).astype("<f4")
        raw = values if kind == "F32" else values.astype("<f2")
        if kind == "BF16":
            raw = (values.view("<u4") >> 16).astype("<u2")
        return Tensor(kind, (rows, depth), raw.tobytes())
    elements, size, spread, places = FORMS[kind]
    raw = random.integers(0, 256, (rows, depth // elements, size), np.uint8)
    for place, factor in places:
        scales = factor * random.uniform(0.5, 1.5, raw.shape[:2]) / (spread * depth**0.5)
        raw[..., place : place + 2] = scales.astype("<f2")[..., None].view(np.uint8)
    return Tensor(kind, (rows, depth), raw.tobytes())


FORMS: Mapping[str, tuple[int, int, float, tuple[tuple[int, float], ...]]] = {
    "Q4_0": (32, 18, 4.6, ((0, 1.0),)),
    "Q4_1": (32, 20, 4.6, ((0, 1.0), (2, -7.5))),
    "Q5_0": (32, 22, 9.2, ((0, 1.0),)),
    "Q5_1": (32, 24, 9.2, ((0, 1.0), (2, -15.5))),
    "Q8_0": (32, 34, 74.0, ((0, 1.0),)),
    "Q4_K": (256, 144, 150.0, ((0, 1.0), (2, 7.5))),
    "Q5_K": (256, 176, 300.0, ((0, 1.0), (2, 15.5))),
    "Q6_K": (256, 210, 1400.0, ((208, 1.0),)),
}
"""Elements and bytes of a block, its spread, and places and factors of its scales."""
