"""Real numbers represented by integers, kept so that kernels can read the integers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tightship.graph import Constant, Derived, DType, Inline, Node, Value, element_count
from tightship.graph.constant import Array

NARROW = frozenset({DType.INT8, DType.UINT8})
"""Element types of quantized tensors that oneDNN computes with."""


@dataclass(frozen=True, slots=True, eq=False)
class Dequantized(Derived):
    """Constant `(integers - zero) * scale`; `scale` and `zero` are scalars, or lie along `axis`.

    Like any other constant, it reads as float32.
    """

    integers: Constant | None = None
    scale: Constant | None = None
    zero: Constant | None = None
    axis: int = 0

    def scaled_by(self, scale: Constant) -> "Dequantized":
        """Replace the scale by one for each index of axis 0."""
        node = Node("", "DequantizeLinear", (), (), {"axis": 0})
        found = dequantized(node, [self.integers, scale, self.zero])
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class Quantization:
    """Representation of real numbers by a tensor of integers: `(integers - zero) * scale`."""

    integers: str
    dtype: DType
    scale: float
    zero: int

    @property
    def reads(self) -> tuple[str, ...]:
        """Values that it reads."""
        return (self.integers,)


@dataclass(frozen=True, slots=True)
class Measured:
    """Tensor of integers whose scale and zero point, of one element each, the run computes."""

    integers: str
    dtype: DType
    scale: str
    zero: str
    """Zero point in int32, as oneDNN needs it."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Values that it reads."""
        return self.integers, self.scale, self.zero


def dequantized(node: Node, operands: list[Constant | None]) -> Dequantized | None:
    """Return the result of a DequantizeLinear of 8-bit constants; None for other operands."""
    integers, scale, *rest = operands
    zero = rest[0] if rest else None
    if (
        integers is None
        or scale is None
        or integers.dtype not in NARROW
        or scale.dtype is not DType.FLOAT32
        or len(scale.shape) > 1
        or node.attributes.get("block_size", 0)
    ):
        return None
    axis = node.integer("axis", 1)
    rank = max(len(integers.shape), 1)
    if element_count(scale.shape) > 1 and not -rank <= axis < rank:
        return None

    def compute() -> Array:
        spread = [1] * len(integers.shape)
        if element_count(scale.shape) > 1:
            spread[axis] = -1
        real = integers.array().astype(np.float32)
        if zero is not None:
            real -= zero.array().astype(np.float32).reshape(spread)
        real *= np.asarray(scale.array(), np.float32).reshape(spread)
        return real

    sources = tuple(operand for operand in operands if operand is not None)
    return Dequantized(
        DType.FLOAT32, integers.shape, compute, sources, ("dequantized", axis),
        integers=integers, scale=scale, zero=zero, axis=axis % rank,
    )  # fmt: skip


def quantization(
    node: Node, dtype: DType | None, constants: Mapping[str, Constant]
) -> Quantization | None:
    """Return the quantization of a QuantizeLinear's result or a DequantizeLinear's operand.

    Return None if its `dtype` is not 8 bits wide, or it has several scales.
    """
    name = node.inputs[0] if node.operator == "DequantizeLinear" else node.outputs[0]
    parameters = [constants.get(parameter) for parameter in node.inputs[1:] if parameter]
    if dtype not in NARROW or any(
        p is None or element_count(p.shape) != 1 or p.dtype is DType.FLOAT16 for p in parameters
    ):
        return None
    scale, *zero = (float(p.array().reshape(())) for p in parameters if p is not None)
    return Quantization(name, dtype, scale, int(zero[0]) if zero else 0)


def measured(node: Node, value: Callable[[str], Value]) -> Measured | None:
    """Return the operands of a Dequantize of our own; None for another node."""
    if (node.domain, node.operator) != ("tightship", "Dequantize"):
        return None
    integers, scale, _, zero = node.inputs
    dtype = value(integers).dtype
    assert dtype in NARROW
    return Measured(integers, dtype, scale, zero)


def signed(constant: Dequantized) -> tuple[Constant, int] | None:
    """Return integers as int8 and their zero point; None if that is not one for all."""
    integers, zero = constant.integers, constant.zero
    assert integers is not None
    zeros = np.zeros(1, np.int32) if zero is None else zero.array().astype(np.int32).reshape(-1)
    if zeros.size == 0 or (zeros != zeros[0]).any():
        return None
    first = int(zeros[0])
    return (integers, first) if integers.dtype is DType.INT8 else (flipped(integers), first - 128)


def flipped(integers: Constant) -> Constant:
    """Subtract 128 from constants of uint8, as int8."""

    def compute() -> Array:
        return (np.asarray(integers.array(), np.uint8) ^ np.uint8(0x80)).view(np.int8)

    return Derived(DType.INT8, integers.shape, compute, (integers,), "flipped")


def scalar(value: float, dtype: DType = DType.FLOAT32) -> Inline:
    """Make a constant of one element."""
    return Inline(np.array([value], dtype.numpy))
