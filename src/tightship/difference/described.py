"""Shapes and types as plans describe them: `1x64 float32`."""

import re
from math import prod

_DESCRIBED = re.compile(r"(scalar|\d+(?:x\d+)*) (\w+)")
_BITS = re.compile(r"(\d+)")


def shape_and_type(text: str) -> tuple[str, str]:
    """Divide a description; both parts are empty if it is none, as for objects of any shape."""
    found = _DESCRIBED.fullmatch(text)
    return (found[1], found[2]) if found else ("", "")


def described_bytes(text: str) -> int:
    """Return the bytes of a described tensor without padding; 0 if the text describes none."""
    shape, dtype = shape_and_type(text)
    if not shape:
        return 0
    bits = 8 if dtype == "bool" else int((_BITS.search(dtype) or [0, 0])[1])
    count = 1 if shape == "scalar" else prod(map(int, shape.split("x")))
    return -(-count * bits // 8)
