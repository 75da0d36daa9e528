"""Cuts an array into blocks that fit in cache."""

import itertools
from collections.abc import Iterator
from typing import Any

from tightship.graph import element_count

BLOCK_ELEMENTS = 16384
"""Elements of a block: enough to make NumPy's calls cheap, few enough to stay in cache."""


def blocks(shape: tuple[int, ...], limit: int = BLOCK_ELEMENTS) -> Iterator[tuple[Any, ...]]:
    """Yield indices of blocks of at most `limit` elements that cover an array once."""
    axis = next((a for a in range(len(shape)) if element_count(shape[a + 1 :]) <= limit), 0)
    if not shape:
        yield (...,)
        return
    rows = max(limit // max(element_count(shape[axis + 1 :]), 1), 1)
    for outer in itertools.product(*(range(length) for length in shape[:axis])):
        for start in range(0, shape[axis], rows):
            yield (*outer, slice(start, start + rows))
