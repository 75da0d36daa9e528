"""Constants of float32 that are stored in half precision, for kernels that take them so."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.engine.lower.builder import Builder
from tightship.graph import Constant, Derived, DType, Node

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


def half_weights(builder: Builder, node: Node) -> tuple[str, DType] | None:
    """The second operand of a product as it is stored, if that is in half precision.

    A kernel that takes both operands so computes what the model says, from half the bytes: its
    values are rounded between operators.
    """
    constant = builder.constant(node.inputs[1])
    if not isinstance(constant, Widened) or constant.narrow is None:
        return None
    name = f"{node.inputs[1]}.narrow"
    builder.add_constant(name, constant.narrow)
    return name, constant.narrow.dtype
