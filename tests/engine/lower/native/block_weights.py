"""Random matrices of quantized blocks, in every form that the kernels read."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tightship._core import NativeKernel


@dataclass(frozen=True, slots=True)
class Form:
    """Form of a matrix; `zeros` is middle, packed or floats, `by_row` one scale for a row."""

    bits: int
    block: int
    is_signed: bool = False
    scale: str = "float32"
    zeros: str = "middle"
    by_row: bool = False


FORMS = st.builds(
    Form,
    st.sampled_from([2, 4, 8]),
    st.sampled_from([16, 32, 64, 128, 256, 512]),
    st.booleans(),
    st.sampled_from(["float32", "float16"]),
    st.sampled_from(["middle", "packed", "floats"]),
    st.booleans(),
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of `rows` x `depth`; `values` are its elements in float64."""

    form: Form
    quants: np.ndarray
    scales: np.ndarray
    zeros: np.ndarray | None
    integers: np.ndarray
    """Quants less zero points, [rows, blocks, block], float64."""

    @property
    def operands(self) -> list[np.ndarray]:
        """Arrays in the order of a kernel's operands."""
        return [self.quants, self.scales, *([] if self.zeros is None else [self.zeros])]

    @property
    def format(self) -> NativeKernel.BlockFormat:
        """The form with the strides of these arrays."""
        form, zeros = self.form, [0, 0]
        if self.zeros is not None:
            zeros = [self.zeros.strides[0], self.zeros.strides[-1]]
        strides = [*self.quants.strides[:2], *self.scales.strides, *zeros]
        return NativeKernel.BlockFormat(
            form.bits, form.block, form.is_signed, form.scale, form.zeros, strides
        )

    @property
    def values(self) -> np.ndarray:
        """Elements [rows, blocks * block], float64."""
        return (self.integers * self.scales[..., None].astype(np.float64)).reshape(
            len(self.quants), -1
        )


def packed(integers: np.ndarray, bits: int) -> np.ndarray:
    """Pack the last axis low bits first, zeros behind its end."""
    per_byte = 8 // bits
    padding = -integers.shape[-1] % per_byte
    padded = np.pad(integers & ((1 << bits) - 1), [(0, 0)] * (integers.ndim - 1) + [(0, padding)])
    apart = padded.reshape(*padded.shape[:-1], -1, per_byte) << (np.arange(per_byte) * bits)
    return apart.sum(-1).astype(np.uint8)


def matrix(form: Form, rows: int, depth: int, seed: int = 0) -> Matrix:
    """Make a matrix of random quants, zero points and scales; some scales are negative."""
    random = np.random.default_rng(seed)
    blocks = -(-depth // form.block)
    low = -(1 << (form.bits - 1)) if form.is_signed else 0
    high = low + (1 << form.bits)
    quants = random.integers(low, high, (rows, blocks, form.block))
    whole, blocks = blocks, 1 if form.by_row else blocks
    scales = random.normal(0, 0.1, (rows, blocks)).astype(form.scale)
    middle = 0 if form.is_signed else 1 << (form.bits - 1)
    points: np.ndarray = np.full((rows, blocks), middle)
    zeros = None
    if form.zeros == "packed":
        points = random.integers(low, high, (rows, blocks))
        zeros = packed(points, form.bits)
    if form.zeros == "floats":
        points = zeros = random.normal(middle, 1, (rows, blocks)).astype(form.scale)
    if form.by_row:  # strides between blocks are 0
        scales = np.broadcast_to(scales, (rows, whole))
        zeros = np.broadcast_to(zeros, (rows, whole)) if form.zeros == "floats" else zeros
    integers = quants - points[..., None].astype(np.float64)
    return Matrix(form, packed(quants, form.bits), scales, zeros, integers)
