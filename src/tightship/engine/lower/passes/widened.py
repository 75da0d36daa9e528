"""Float32 constants stored in half precision, for kernels that read them directly."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tightship.graph import Constant, Derived, DType
from tightship.graph.constant import Array

HALVES = {DType.FLOAT16: 10, DType.BFLOAT16: 16}
"""Half-precision types, with their numbers for Cast."""


@dataclass(frozen=True, slots=True, eq=False)
class Widened(Derived):
    """Float32 constant that is stored in half precision."""

    narrow: Constant | None = None


def widened(constant: Constant) -> Widened:
    """Convert a constant's elements to float32."""
    compute = partial(_as_float32, constant)
    return Widened(DType.FLOAT32, constant.shape, compute, (constant,), "widened", narrow=constant)


def _as_float32(constant: Constant) -> Array:
    return constant.array().astype(np.float32)
