"""Vectorized decoding of protobuf numbers."""

import numpy as np
from numpy.typing import NDArray

from tightship.errors import FormatError

_VARINT_BYTES_MAX = 10


def decode_varints(raw: NDArray[np.uint8], name: str) -> NDArray[np.uint64]:
    """Decode the numbers of a packed field, in two's complement of 64 bits.

    Takes one pass for each byte of the longest number.

    Args:
        raw: Bytes of the field.
        name: Name of the tensor in messages.

    Raises:
        FormatError: The last number is cut off, or one has more than 10 bytes.
    """
    stops = np.flatnonzero(raw < 0x80) + 1
    if raw.size == 0:
        return np.zeros(0, np.uint64)
    if stops.size == 0 or stops[-1] != raw.size:
        raise FormatError(f"Tensor `{name}` ends within a number.")
    starts = np.concatenate(([0], stops[:-1]))
    lengths = stops - starts
    longest = int(lengths.max())
    if longest > _VARINT_BYTES_MAX:
        raise FormatError(
            f"Tensor `{name}` has a number of {longest} bytes; the limit is {_VARINT_BYTES_MAX}."
        )
    numbers = np.zeros(stops.size, np.uint64)
    for index in range(longest):
        longer = lengths > index
        digits = (raw[starts[longer] + index] & 0x7F).astype(np.uint64)
        numbers[longer] |= digits << np.uint64(7 * index)
    return numbers
