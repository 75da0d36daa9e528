"""Inputs of a decoder's file whose elements follow from the lengths of a step."""

from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Meaning(Enum):
    """Meaning of the elements of such an input."""

    ROWS_IN_USE = "mask of ones for the rows in use"
    NEW_POSITIONS = "positions of the new rows"
    COUNT = "number of rows in every element"


class FollowingInput(NamedTuple):
    """Input that follows from the past length and the number of new tokens.

    Attributes:
        meaning: What its elements are.
        is_total: Whether a count has the new rows as well as the past ones.
        less: Number subtracted from a count.
    """

    meaning: Meaning
    is_total: bool = False
    less: int = 0

    def added(self, steps: int) -> int:
        """Return what a count adds to the past length."""
        return (steps if self.is_total else 0) - self.less

    def value(self, past: int, steps: int) -> NDArray[np.int64]:
        """Return the elements as an array that broadcasts to the input's shape."""
        if self.meaning is Meaning.ROWS_IN_USE:
            return np.ones((), np.int64)
        if self.meaning is Meaning.NEW_POSITIONS:
            return np.arange(past, past + steps)
        return np.array(past + self.added(steps), np.int64)


ROWS_IN_USE = FollowingInput(Meaning.ROWS_IN_USE)
NEW_POSITIONS = FollowingInput(Meaning.NEW_POSITIONS)
PAST = FollowingInput(Meaning.COUNT)
TOTAL = FollowingInput(Meaning.COUNT, is_total=True)
LAST = FollowingInput(Meaning.COUNT, is_total=True, less=1)
