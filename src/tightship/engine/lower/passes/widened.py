"""Float32 constants stored in half precision, for kernels that read them directly."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, Derived, DType

HALVES = {DType.FLOAT16: 10, DType.BFLOAT16: 16}
"""Half-precision types, with their numbers for Cast."""


@dataclass(frozen=True, eq=False)
class Widened(Derived):
    """Float32 constant that is stored in half precision."""

    narrow: Constant | None = None


def widened(constant: Constant) -> Widened:
    """Convert a constant's elements to float32."""

    def compute() -> NDArray[np.generic]:
        return constant.array().astype(np.float32)

    return Widened(DType.FLOAT32, constant.shape, compute, (constant,), "widened", narrow=constant)
