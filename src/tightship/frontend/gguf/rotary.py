"""Rotation of queries and keys by their positions."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.errors import GraphError
from tightship.frontend.gguf.metadata import Metadata

RULES = ("none", "linear")


@dataclass(frozen=True, slots=True)
class Rotary:
    """Rotation of the heads of some layers.

    Attributes:
        length: Elements of a head that are rotated, from the first on.
        base: Base of the angles' powers.
        factor: Number that positions are divided by.
        are_neighbours: Whether rotated pairs are neighbours in a head.
    """

    length: int
    base: float
    factor: float
    are_neighbours: bool

    @property
    def frequencies(self) -> NDArray[np.float64]:
        """Angles of each pair from one position to the next."""
        half = self.length // 2
        found: NDArray[np.float64] = self.base ** -(np.arange(half) / half) / self.factor
        return found


def read_rotary(metadata: Metadata, length: int, *, are_neighbours: bool) -> Rotary:
    """Read the rotation of heads of a length.

    Raises:
        FormatError: A value does not fit.
        GraphError: Positions are scaled by a rule that is not supported.
    """
    rotated = metadata.integer("rope.dimension_count", length, most=length)
    if rotated % 2:
        raise metadata.refusal("rope.dimension_count", rotated, f"an even number up to {length}")
    rule = metadata.text("rope.scaling.type", "none")
    if rule not in RULES:
        raise GraphError(
            f"`{metadata.path}` scales positions by the rule `{rule}`, which is not supported; "
            f"supported are {', '.join(RULES)}, and the factors of the tensor `rope_freqs.weight`. "
            "Use a model with one of these."
        )
    factor = metadata.number("rope.scaling.factor", 1.0) if rule == "linear" else 1.0
    return Rotary(rotated, metadata.number("rope.freq_base", 10_000.0), factor, are_neighbours)
