"""Shared parts of emitters on 8-bit integers: scales, zero points and the ending of sums."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tightship._core import Attributes, MemoryDesc
from tightship.engine.lower.passes.dequantized import (
    Dequantized,
    Measured,
    Quantization,
    quantization,
    scalar,
    signed,
)
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.engine.lower.steps.builder import DST, SRC, Builder
from tightship.engine.lower.steps.fused_nodes import eltwise_of
from tightship.engine.program.program import Operand
from tightship.graph import Constant, DType, Node, element_count

WEIGHTS = 33
LEAST = {DType.INT8: -128, DType.UINT8: 0}
SCALES, ZERO_POINTS = 4096, 8192
"""`DNNL_ARG_ATTR_*` numbers, to which an operand's number is added."""


@dataclass(slots=True)
class Scales:
    """Scales and zero points of a primitive's operands, bound as operands of their own."""

    attributes: Attributes = field(default_factory=Attributes)
    operands: list[tuple[int, str, Constant]] = field(default_factory=list)
    values: list[tuple[int, str, DType]] = field(default_factory=list)
    """Scales and zero points that the run computes."""

    def add(self, argument: int, tensor: Quantization | Measured) -> None:
        """Add one scale, and a zero point unless it is 0."""
        self.attributes.scale(argument, 0)
        if isinstance(tensor, Measured):
            self.attributes.zero_point(argument, 0)
            self.values.append((SCALES + argument, tensor.scale, DType.FLOAT32))
            self.values.append((ZERO_POINTS + argument, tensor.zero, DType.INT32))
            return
        name = f"{tensor.integers}.argument{argument}"
        self.operands.append((SCALES + argument, f"{name}.scale", scalar(tensor.scale)))
        if tensor.zero:
            self.attributes.zero_point(argument, 0)
            zero = scalar(tensor.zero, DType.INT32)
            self.operands.append((ZERO_POINTS + argument, f"{name}.zero", zero))

    def add_weights(self, weights: "IntegerWeights", mask: int) -> None:
        """Add one scale for all weights, or one for each output channel, which `mask` marks."""
        scale, name = weights.scale, weights.name
        count = element_count(scale.shape)
        flat = reshaped(scale, (count,))
        self.attributes.scale(WEIGHTS, mask if count > 1 else 0)
        self.operands.append((SCALES + WEIGHTS, f"{name}.scale", flat))
        if weights.zero:
            self.attributes.zero_point(WEIGHTS, 0)
            zero = scalar(weights.zero, DType.INT32)
            self.operands.append((ZERO_POINTS + WEIGHTS, f"{name}.zero", zero))

    def bound(self, builder: Builder) -> list[tuple[int, Operand]]:
        """Return the operands to bind."""
        found = []
        for argument, name, constant in self.operands:
            builder.add_constant(name, constant)
            vector = MemoryDesc(list(constant.shape), constant.dtype.value)
            found.append((argument, builder.weight(name, vector, vector)))
        for argument, name, dtype in self.values:
            one = MemoryDesc([1], dtype.value)
            found.append((argument, builder.dense(name).under(one)))
        return found


@dataclass(frozen=True, slots=True)
class Ending:
    """Operations on sums before they are written."""

    activations: tuple[tuple[str, float, float], ...]
    target: Quantization

    def apply(self, scales: Scales) -> None:
        """Append the operations to a primitive that has a scale for its destination."""
        for activation in self.activations:
            scales.attributes.add_eltwise(*activation)
        scales.add(DST, self.target)


def ends_real(node: Node) -> bool:
    """Whether the node writes real numbers, so that its fused nodes are plain post-operations."""
    return not node.fused or node.fused[-1].operator != "QuantizeLinear"


def ending(builder: Builder, node: Node) -> Ending | None:
    """Split the fused nodes into activations and a QuantizeLinear; None if that is impossible.

    A Relu is left out if the integers' own range excludes negative numbers.
    """
    if ends_real(node):
        return None
    *fused, last = node.fused
    dtype = builder.value(last.outputs[0]).dtype
    target = quantization(last, dtype, builder.graph.constants)
    if target is None:
        return None
    last_is_relu = bool(fused) and fused[-1].operator == "Relu"
    if last_is_relu and target.zero == LEAST[target.dtype]:
        fused.pop()
    found = [eltwise_of(builder, each) for each in fused]
    if any(each is None for each in found):
        return None
    return Ending(tuple(each for each in found if each is not None), target)


@dataclass(frozen=True, slots=True)
class IntegerWeights:
    """Constant in the form that integer kernels need."""

    name: str
    scale: Constant
    zero: int


def integer_weights(builder: Builder, name: str, axes: Sequence[int]) -> IntegerWeights | None:
    """Return the int8 form of a constant with one scale, or with scales along one of `axes`."""
    constant = builder.constant(name)
    if not isinstance(constant, Dequantized) or constant.scale is None:
        return None
    if element_count(constant.scale.shape) > 1 and constant.axis not in axes:
        return None
    found = signed(constant)
    if found is None:
        return None
    builder.add_constant(f"{name}.int8", found[0])
    return IntegerWeights(f"{name}.int8", constant.scale, found[1])


def source(
    builder: Builder, tensor: Quantization | Measured, desc: MemoryDesc
) -> tuple[int, Operand]:
    """Bind the first operand, in the primitive's layout."""
    return SRC, builder.in_layout(tensor.integers, desc)
