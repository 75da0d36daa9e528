"""Constant matrices of integers in blocks, kept so that kernels can read the integers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightship.graph import Constant, Derived

if TYPE_CHECKING:
    from tightship.engine.kernels.block_weights import BlockForm


@dataclass(frozen=True, slots=True)
class Blocks:
    """Operands of a matrix in blocks, as kernels read them.

    Attributes:
        form: Form of the integers.
        integers: Bytes [rows, `form.row_bytes`].
        scales: float32 or float16 [rows, blocks].
        zeros: Zero points: bytes [rows, `form.zero_bytes`], or reals as the scales; None if all
            are `form.middle`.
        mode: Activations that a product may use: `exact` for float32, `int8` for integers with a
            scale for each block of a row.
    """

    form: "BlockForm"
    integers: Constant
    scales: Constant
    zeros: Constant | None
    mode: str

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Constants that the matrix is computed from."""
        operands = self.integers, self.scales, self.zeros
        return tuple(operand for operand in operands if operand is not None)


@dataclass(frozen=True, slots=True, eq=False)
class BlockWeights(Derived):
    """Constant matrix in blocks; like any other constant, it reads as real numbers.

    `is_turned` says that it is the transpose, [depth, rows].
    """

    blocks: Blocks | None = None
    is_turned: bool = False
