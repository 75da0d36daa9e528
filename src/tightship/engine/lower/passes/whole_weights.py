"""Whole numbers, zero points and scales that weights of recurrent layers are made of.

`DynamicQuantizeLSTM` is written as Cast, Sub, Mul and Transpose of constants. Each would hold all
weights once more while they are packed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.engine.lower.passes.dequantized import NARROW
from tightship.graph import Constant, Derived, DType, element_count

LIMITS = {DType.INT8: (-128, 127), DType.UINT8: (0, 255)}
"""Whole numbers that zero points are among, by the type of the weights."""


@dataclass(frozen=True, slots=True)
class WholeWeights:
    """Weights [directions, to, from] as `(integers - zero) * scale`, transposed.

    Attributes:
        integers: Numbers of eight bits, [directions, from, to].
        zero: Zero points, [directions, 1, to or 1]; None for zero.
        scale: Scales of the same form.
    """

    integers: Constant
    zero: Constant | None
    scale: Constant

    @property
    def parts(self) -> tuple[Constant, ...]:
        """Constants that the weights are made of."""
        return (self.integers, self.scale, *([self.zero] if self.zero else []))

    def whole(self) -> NDArray[np.int16]:
        """Compute the integers less their zero points, [directions, from, to]."""
        zero = 0 if self.zero is None else self.zero.array().astype(np.int16)
        return np.subtract(self.integers.array(), zero, dtype=np.int16)

    def columns(self) -> NDArray[np.float32]:
        """Compute the weights as a matrix [from, directions * to]."""
        directions, depth, rows = self.integers.shape
        found = np.empty((depth, directions, rows), np.float32)
        numbers, scale = self.integers.array(), self.scale.array()
        for direction in range(directions):
            part = found[:, direction]
            part[...] = numbers[direction]
            if self.zero is not None:
                part -= np.asarray(self.zero.array(), np.float32)[direction]
            part *= np.asarray(scale, np.float32)[direction]
        return found.reshape(depth, directions * rows)


def whole_weights(weights: Constant) -> WholeWeights | None:
    """Return the parts of weights that are computed from whole numbers; None for others."""
    product = _operands(weights, "Transpose", perm=(0, 2, 1))
    factors = _operands(product[0], "Mul") if product else ()
    if len(factors) != 2:
        return None
    whole, scale = factors
    difference = _operands(whole, "Sub")
    integers, zero = difference or (whole, None)
    source = _operands(integers, "Cast")
    if not source or source[0].dtype not in NARROW or scale.dtype is not DType.FLOAT32:
        return None
    directions, _, rows = whole.shape
    forms = ((directions, 1, 1), (directions, 1, rows))
    if scale.shape not in forms or (zero is not None and zero.shape not in forms):
        return None
    if zero is not None and not _is_among(zero, *LIMITS[source[0].dtype]):
        return None
    return WholeWeights(source[0], zero, scale)


def _is_among(zero: Constant, least: int, most: int) -> bool:
    """Whether zero points are whole numbers between limits."""
    values = np.asarray(zero.array(), np.float64)
    return bool(element_count(zero.shape)) and bool(
        (values % 1 == 0).all() and values.min() >= least and values.max() <= most
    )


def _operands(
    constant: Constant, operator: str, **attributes: tuple[int, ...]
) -> Sequence[Constant]:
    """Return the operands of the operator that a constant is computed by; empty for another."""
    if not isinstance(constant, Derived) or not isinstance(constant.recipe, tuple):
        return ()
    if constant.recipe[:2] != (operator, "") or len(constant.shape) != 3:
        return ()
    found = dict(constant.recipe[4])
    return constant.sources if all(found.get(k) == v for k, v in attributes.items()) else ()
