"""Per-channel scale and shift, computed from whatever expresses them when it is packed."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, Derived, DType, Fill, Inline
from tightship.graph.followed import constant_key

Vector = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Scaled:
    """`source` with each slice along its first axis multiplied by an element of `factor`.

    Packing multiplies piece by piece, so that a large weight is never copied whole.
    """

    source: Constant
    factor: Constant

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.source.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the source."""
        return self.source.shape

    def array(self) -> NDArray[np.generic]:
        """The product, computed whole."""
        factor = self.factor.array().reshape(-1, *[1] * (len(self.shape) - 1))
        return np.multiply(self.source.array(), factor)

    def release(self) -> None:
        """Give back the pages that the source brought in."""
        self.source.release()


def key_of(constant: Constant) -> Hashable:
    """As `constant_key`; equal for a constant scaled by equal factors too."""
    if isinstance(constant, Scaled):
        return "scaled", key_of(constant.source), key_of(constant.factor)
    return constant_key(constant)


def vector(length: int, compute: Callable[[], Vector], *sources: Constant) -> Derived:
    """A float32 vector computed from other constants."""
    return Derived(DType.FLOAT32, (length,), compute, sources)


@dataclass(frozen=True, slots=True)
class Affine:
    """`y = x * scale + shift` for each of `channels`."""

    scale: Constant
    shift: Constant

    @property
    def channels(self) -> int:
        """How many there are."""
        return self.scale.shape[0]

    def then_scaled(self, factor: Constant) -> "Affine":
        """This, then multiplied by `factor` (one element, or one a channel)."""
        n, scale, shift = self.channels, self.scale, self.shift
        return Affine(
            vector(n, lambda: flat(scale) * flat(factor), scale, factor),
            vector(n, lambda: flat(shift) * flat(factor), shift, factor),
        )

    def then_shifted(self, term: Constant) -> "Affine":
        """This, then `term` added (one element, or one a channel)."""
        n, shift = self.channels, self.shift
        return Affine(self.scale, vector(n, lambda: flat(shift) + flat(term), shift, term))


def identity(channels: int) -> Affine:
    """Scale one, shift zero."""
    one, zero = np.ones((), np.float32), np.zeros((), np.float32)
    return Affine(Fill(one, (channels,)), Fill(zero, (channels,)))


def flat(constant: Constant) -> Vector:
    """The elements as one float32 vector."""
    return np.asarray(constant.array(), np.float32).reshape(-1)


def normalization(
    scale: Constant, shift: Constant, mean: Constant, variance: Constant, epsilon: float
) -> Affine:
    """What batch normalization does at inference."""
    n = scale.shape[0]

    def factor() -> Vector:
        deviation: Vector = np.sqrt(flat(variance) + np.float32(epsilon))
        return flat(scale) / deviation

    return Affine(
        vector(n, factor, scale, variance),
        vector(n, lambda: flat(shift) - flat(mean) * factor(), scale, shift, mean, variance),
    )


def small(value: float) -> Inline:
    """A scalar constant."""
    return Inline(np.asarray(value, np.float32))
