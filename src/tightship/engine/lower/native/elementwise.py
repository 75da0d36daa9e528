"""Emits elementwise operators, with broadcasting and in place where possible."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tightship._core import MemoryDesc, NativeKernel
from tightship.engine.kernels.kernel_context import KernelContext, require
from tightship.engine.kernels.numbers import is_integer
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.strides import broadcast_strides, plain, site_of
from tightship.engine.program.program import Operand
from tightship.graph import DType, Node
from tightship.graph.layout import size_bytes


@dataclass(frozen=True, slots=True)
class Elementwise:
    """Kernel name, the inputs that it reads, and its parameters."""

    name: str
    inputs: tuple[str, ...]
    parameters: tuple[float, ...] = ()


def elementwise(builder: Builder, node: Node) -> bool:
    """Emit one kernel; a float32 result has the layout of its operands."""
    context = site_of(builder, node)
    require(context.version >= 7 or "axis" not in node.attributes)
    meaning = MEANINGS.get(node.operator, _plainly)(context)
    inputs = meaning.inputs
    types = _kernel_types(node, [builder.value(name).dtype for name in inputs], context)
    require(_is_covered(meaning.name, tuple(types)))
    sources = [plain(builder, name) for name in inputs]
    target = builder.output(node.outputs[0], _layout(builder, node, sources))
    every = [broadcast_strides(operand, target.shape) for operand in (*sources, target)]
    order = sorted(range(len(target.shape)), key=lambda axis: -every[-1][axis])
    kernel = NativeKernel.elementwise(
        meaning.name,
        types,
        [target.shape[axis] for axis in order],
        [[strides[axis] for axis in order] for strides in every],
        meaning.parameters,
    )
    assert kernel is not None, meaning
    in_place = [
        (target, source)
        for source, strides in zip(sources, every[:-1], strict=True)
        if (source.dtype, source.shape, strides) == (target.dtype, target.shape, every[-1])
    ]
    builder.native(node, (meaning.name, kernel), sources, [target], in_place=in_place)
    return True


def _kernel_types(node: Node, inputs: Sequence[DType | None], context: KernelContext) -> list[str]:
    """Return the types of inputs and output; data that is only moved counts by its size."""
    output = context.output().dtype
    types = [dtype.value for dtype in (*inputs, output) if dtype is not None]
    if node.operator != "Where":
        return types
    assert output is not None
    require(output.itemsize in (1, 2, 4, 8))
    return ["bool", *[f"uint{8 * output.itemsize}"] * 3]


@cache
def _is_covered(name: str, types: tuple[str, ...]) -> bool:
    return NativeKernel.elementwise(name, types, [], [[]] * len(types), ()) is not None


def _layout(builder: Builder, node: Node, sources: Sequence[Operand]) -> MemoryDesc | None:
    """Return the layout of the first dense operand of the result's shape; None for row-major."""
    value = builder.value(node.outputs[0])
    if value.dtype is not DType.FLOAT32 or builder.is_like_output(value.name):
        return None
    shape = value.static_shape
    return next(
        (
            source.desc
            for source in sources
            if source.shape == shape
            and source.desc is not None
            and source.dtype is DType.FLOAT32
            and source.desc.size_bytes == size_bytes(DType.FLOAT32, shape)
        ),
        None,
    )


def _plainly(context: KernelContext) -> Elementwise:
    node = context.node
    defaults = ATTRIBUTES.get(node.operator, {})
    parameters = tuple(context.number(name, default) for name, default in defaults.items())
    return Elementwise(node.operator, node.inputs, parameters)


def _clip(context: KernelContext) -> Elementwise:
    """Read limits from attributes before opset 11, from inputs since."""
    x, *limits = context.node.inputs
    if context.version < 11:
        finite = np.finfo(np.float32)
        bounds = context.number("min", float(finite.min)), context.number("max", float(finite.max))
        return Elementwise("Limit", (x,), bounds)
    low, high = (*limits, "", "")[:2]
    if low and high:
        known = [context.constants.get(name) for name in (low, high)]
        numbers = [float(c.array().reshape(())) for c in known if c is not None]
        if len(numbers) == 2 and all(abs(number) < 2**53 for number in numbers):
            return Elementwise("Limit", (x,), tuple(numbers))
        return Elementwise("Clip", (x, low, high))
    if low or high:
        return Elementwise("Max", (x, low)) if low else Elementwise("Min", (x, high))
    return Elementwise("Cast", (x,))


def _power(context: KernelContext) -> Elementwise:
    """Compute powers in the type of the base; negative powers of integers are not covered."""
    base, exponent = context.dtype(0), context.dtype(1)
    if is_integer(base):
        require(is_integer(exponent))
    if is_integer(base) and exponent.kind == "i":
        known = context.parameter(1)
        require(known is not None and bool(np.all(known >= np.zeros((), known.dtype))))
    return Elementwise("Pow", context.node.inputs)


def _is_infinite(context: KernelContext) -> Elementwise:
    positive = bool(context.integer("detect_positive", 1))
    negative = bool(context.integer("detect_negative", 1))
    require(positive or negative)
    sign = "" if positive and negative else "Positive" if positive else "Negative"
    return Elementwise(f"Is{sign}Inf", context.node.inputs)


def _selu(context: KernelContext) -> Elementwise:
    old = context.version < 6
    alpha = context.number("alpha", 1.6732 if old else 1.67326319217681884765625)
    gamma = context.number("gamma", 1.0507 if old else 1.05070102214813232421875)
    return Elementwise("Selu", context.node.inputs, (alpha, gamma))


def _gelu(context: KernelContext) -> Elementwise:
    is_tanh = context.text("approximate", "none") == "tanh"
    return Elementwise("GeluTanh" if is_tanh else "Gelu", context.node.inputs)


def _modulo(context: KernelContext) -> Elementwise:
    return Elementwise("Fmod" if context.integer("fmod", 0) else "Mod", context.node.inputs)


def _bit_shift(context: KernelContext) -> Elementwise:
    direction = "Right" if context.text("direction", "") == "RIGHT" else "Left"
    return Elementwise(f"Shift{direction}", context.node.inputs)


def _prelu(context: KernelContext) -> Elementwise:
    require(context.version >= 7)
    return _plainly(context)


def _cast(context: KernelContext) -> Elementwise:
    return Elementwise("Cast", context.node.inputs[:1])


ATTRIBUTES: Mapping[str, Mapping[str, float]] = {
    "Celu": {"alpha": 1.0},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "Shrink": {"bias": 0.0, "lambd": 0.5},
    "Swish": {"alpha": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}
"""Attributes that become parameters, in order, with their defaults."""

MEANINGS: Mapping[str, Callable[[KernelContext], Elementwise]] = {
    "BitShift": _bit_shift,
    "Cast": _cast,
    "CastLike": _cast,
    "Clip": _clip,
    "Gelu": _gelu,
    "IsInf": _is_infinite,
    "Mod": _modulo,
    "PRelu": _prelu,
    "Pow": _power,
    "Selu": _selu,
}

_NAMES = (
    *ATTRIBUTES,
    *MEANINGS,
    *("Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitwiseAnd"),
    *("BitwiseNot", "BitwiseOr", "BitwiseXor", "Ceil", "Cos", "Cosh", "Div", "Equal", "Erf"),
    *("Exp", "Floor", "Greater", "GreaterOrEqual", "HardSwish", "IsNaN", "Less", "LessOrEqual"),
    *("Log", "Max", "Mean", "Min", "Mish", "Mul", "Neg", "Not", "Or", "Reciprocal", "Relu"),
    *("Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum"),
    *("Tan", "Tanh", "Where", "Xor"),
)

ELEMENTWISE = {("", operator): elementwise for operator in _NAMES}
"""Emitters by domain and operator."""
