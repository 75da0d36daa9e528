"""Constant matrices in blocks or encoded rows, kept so that kernels can read what is stored."""

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
        scales: float32 or float16 [rows, blocks]; [rows, 1] if the blocks of a row have one scale
            and one zero point.
        zeros: Zero points: bytes [rows, `form.zero_bytes`], or [rows, 1] as the scales, or reals as
            the scales; None if all are `form.middle`.
        mode: Activations that a product may use: `exact` for float32, `int8` for integers with a
            scale for each block of a row.
    """

    form: "BlockForm"
    integers: Constant
    scales: Constant
    zeros: Constant | None
    mode: str

    @property
    def is_by_row(self) -> bool:
        """Whether the blocks of a row have one scale and one zero point."""
        return self.scales.shape != (self.form.rows, self.form.blocks)

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Constants that the matrix is computed from."""
        operands = self.integers, self.scales, self.zeros
        return tuple(operand for operand in operands if operand is not None)


@dataclass(frozen=True, slots=True)
class EncodedRows:
    """Operand of a matrix whose rows are encoded.

    Attributes:
        type: Type of the rows, as `engine.kernels.encoded_rows` names it.
        rows: Rows of the matrix.
        depth: Elements of a row.
        stored: Bytes [rows, bytes of a row].
    """

    type: str
    rows: int
    depth: int
    stored: Constant

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Constants that the matrix is computed from."""
        return (self.stored,)


@dataclass(frozen=True, slots=True, eq=False)
class BlockWeights(Derived):
    """Constant matrix in blocks or encoded rows; like any other constant, it reads as real numbers.

    `is_turned` says that it is the transpose, [depth, rows].
    """

    blocks: Blocks | EncodedRows | None = None
    is_turned: bool = False
