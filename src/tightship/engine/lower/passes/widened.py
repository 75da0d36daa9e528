"""Constants of float32 that are stored in half precision, for kernels that take them so."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, Derived, DType

HALVES = {DType.FLOAT16: 10, DType.BFLOAT16: 16}
"""And what Cast calls them."""


@dataclass(frozen=True, eq=False)
class Widened(Derived):
    """A constant of float32 that is stored in half precision."""

    narrow: Constant | None = None


def widened(constant: Constant) -> Widened:
    """A constant's elements as float32."""

    def compute() -> NDArray[np.generic]:
        return constant.array().astype(np.float32)

    return Widened(DType.FLOAT32, constant.shape, compute, (constant,), "widened", narrow=constant)
