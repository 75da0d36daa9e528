"""Products, additions and poolings of 8-bit integers; scales and zero points go with them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tightship._core import Attributes, MemoryDesc
from tightship.engine.lower.builder import DST, SRC, Builder
from tightship.engine.lower.dequantized import (
    Dequantized,
    Quantization,
    quantization,
    scalar,
    signed,
)
from tightship.engine.lower.onednn.post_ops import eltwise_of
from tightship.engine.program import Operand
from tightship.graph import Constant, Derived, DType, Node, element_count

WEIGHTS = 33
LEAST = {DType.INT8: -128, DType.UINT8: 0}
SCALES, ZERO_POINTS = 4096, 8192
"""`DNNL_ARG_ATTR_*`: of the operand whose number is added."""


@dataclass(slots=True)
class Scales:
    """Scales and zero points of a primitive's operands, given to it as operands of their own."""

    attributes: Attributes = field(default_factory=Attributes)
    operands: list[tuple[int, str, Constant]] = field(default_factory=list)

    def add(self, argument: int, tensor: Quantization) -> None:
        """One scale, and a zero point if there is any."""
        name = f"{tensor.integers}.argument{argument}"
        self.attributes.scale(argument, 0)
        self.operands.append((SCALES + argument, f"{name}.scale", scalar(tensor.scale)))
        if tensor.zero:
            self.attributes.zero_point(argument, 0)
            zero = scalar(tensor.zero, DType.INT32)
            self.operands.append((ZERO_POINTS + argument, f"{name}.zero", zero))

    def add_weights(self, name: str, scale: Constant, mask: int) -> None:
        """One scale for all weights, or one for each output channel, which `mask` marks."""
        count = element_count(scale.shape)
        flat = Derived(DType.FLOAT32, (count,), lambda: scale.array().reshape(count), (scale,))
        self.attributes.scale(WEIGHTS, mask if count > 1 else 0)
        self.operands.append((SCALES + WEIGHTS, f"{name}.scale", flat))

    def bound(self, builder: Builder) -> list[tuple[int, Operand]]:
        """The operands."""
        found = []
        for argument, name, constant in self.operands:
            builder.add_constant(name, constant)
            vector = MemoryDesc(list(constant.shape), constant.dtype.value)
            found.append((argument, builder.weight(name, vector, vector)))
        return found


@dataclass(frozen=True, slots=True)
class Ending:
    """What is done with sums before they are written."""

    activations: tuple[tuple[str, float, float], ...]
    target: Quantization | None
    """None: real numbers are written."""

    @property
    def dtype(self) -> str:
        """Element type that is written."""
        return "float32" if self.target is None else self.target.dtype.value

    def apply(self, scales: Scales) -> None:
        """Append it to a primitive that knows scales of its destination."""
        for activation in self.activations:
            scales.attributes.add_eltwise(*activation)
        if self.target is not None:
            scales.add(DST, self.target)


def ending(builder: Builder, node: Node) -> Ending | None:
    """The fused nodes: activations, then QuantizeLinear; None if there is anything else.

    A Relu is left out where the integers' own range cuts off what is negative.
    """
    fused = list(node.fused)
    target = None
    if fused and fused[-1].operator == "QuantizeLinear":
        last = fused.pop()
        dtype = builder.value(last.outputs[0]).dtype
        target = quantization(last, dtype, builder.graph.constants)
        if target is None:
            return None
    last_is_relu = bool(fused) and fused[-1].operator == "Relu"
    if target is not None and last_is_relu and target.zero == LEAST[target.dtype]:
        fused.pop()
    found = [eltwise_of(builder, each) for each in fused]
    if any(each is None for each in found):
        return None
    return Ending(tuple(each for each in found if each is not None), target)


@dataclass(frozen=True, slots=True)
class IntegerWeights:
    """A constant as a kernel of integers takes it."""

    name: str
    scale: Constant


def integer_weights(builder: Builder, name: str, axes: Sequence[int]) -> IntegerWeights | None:
    """The int8 form of a constant with one scale, or with scales along one of `axes`."""
    constant = builder.constant(name)
    if not isinstance(constant, Dequantized) or constant.scale is None:
        return None
    if element_count(constant.scale.shape) > 1 and constant.axis not in axes:
        return None
    integers = signed(constant)
    if integers is None:
        return None
    builder.add_constant(f"{name}.int8", integers)
    return IntegerWeights(f"{name}.int8", constant.scale)


def source(builder: Builder, tensor: Quantization, desc: MemoryDesc) -> tuple[int, Operand]:
    """The first operand, in the primitive's layout."""
    return SRC, builder.in_layout(tensor.integers, desc)
