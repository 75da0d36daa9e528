"""Per-channel scale and shift as constants that are computed when they are packed."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tightship.graph import Constant, Derived, DType, Fill, Inline
from tightship.graph.constant import Computed

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Scaled(Computed):
    """Constant `source`, each slice along its first axis multiplied by an element of `factor`.

    Packing multiplies chunk by chunk, so that a large weight is never copied whole.
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
        """Compute the whole product."""
        factor = self.factor.array().reshape(-1, *[1] * (len(self.shape) - 1))
        return np.multiply(self.source.array(), factor)

    @property
    def sources(self) -> tuple[Constant, ...]:
        """Constants that it is computed from."""
        return self.source, self.factor

    @property
    def recipe(self) -> Hashable:
        """The same key for all, because both operands are sources."""
        return "scaled"

    def release(self) -> None:
        """Give back the pages that reading the source brought in."""
        self.source.release()


def vector(
    length: int, compute: Callable[[], Vector], *sources: Constant, recipe: Hashable
) -> Derived:
    """Make a float32 vector computed from other constants; `recipe` as for `Derived`."""
    return Derived(DType.FLOAT32, (length,), compute, sources, recipe)


class Affine(NamedTuple):
    """`y = x * scale + shift` for each of `channels`."""

    scale: Constant
    shift: Constant

    @property
    def channels(self) -> int:
        """Number of channels."""
        return self.scale.shape[0]

    def then_scaled(self, factor: Constant) -> "Affine":
        """Multiply the result by `factor`, of one element or one for each channel."""
        n, scale, shift = self.channels, self.scale, self.shift
        return Affine(
            vector(n, lambda: flat(scale) * flat(factor), scale, factor, recipe="product"),
            vector(n, lambda: flat(shift) * flat(factor), shift, factor, recipe="product"),
        )

    def then_shifted(self, term: Constant) -> "Affine":
        """Add `term` to the result, of one element or one for each channel."""
        n, shift = self.channels, self.shift
        moved = vector(n, lambda: flat(shift) + flat(term), shift, term, recipe="sum")
        return Affine(self.scale, moved)


def identity(channels: int) -> Affine:
    """Make an affine map of scale one and shift zero."""
    one, zero = np.ones((), np.float32), np.zeros((), np.float32)
    return Affine(Fill(one, (channels,)), Fill(zero, (channels,)))


def flat(constant: Constant) -> Vector:
    """Return the elements as one float32 vector."""
    return np.asarray(constant.array(), np.float32).reshape(-1)


def normalization(
    scale: Constant, shift: Constant, mean: Constant, variance: Constant, epsilon: float
) -> Affine:
    """Return the affine map of a batch normalization at inference."""
    n = scale.shape[0]

    def factor() -> Vector:
        deviation: Vector = np.sqrt(flat(variance) + np.float32(epsilon))
        return flat(scale) / deviation

    return Affine(
        vector(n, factor, scale, variance, recipe=("normalization scale", epsilon)),
        vector(
            n, lambda: flat(shift) - flat(mean) * factor(), scale, shift, mean, variance,
            recipe=("normalization shift", epsilon),
        ),
    )  # fmt: skip


def small(value: float) -> Inline:
    """Make a scalar constant."""
    return Inline(np.asarray(value, np.float32))
