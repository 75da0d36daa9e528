"""Emits elementwise operators, with broadcasting and in place where possible."""

from collections.abc import Callable, Sequence
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


def _emitter(meaning_of: Callable[[KernelContext], Elementwise]) -> Callable[[Builder, Node], None]:
    """Emit one kernel for what a node means."""
    return lambda builder, node: _emit(builder, node, meaning_of)


def _emit(builder: Builder, node: Node, meaning_of: Callable[[KernelContext], Elementwise]) -> None:
    """Emit one kernel; a float32 result lies as its operands do."""
    context = site_of(builder, node)
    require(context.version >= 7 or "axis" not in node.attributes)
    meaning = meaning_of(context)
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


@_emitter
def elementwise(context: KernelContext) -> Elementwise:
    return Elementwise(context.node.operator, context.node.inputs)


def parameters(defaults: str) -> Callable[[Builder, Node], None]:
    """Make parameters of attributes, given as `name=default` in the order of the parameters."""
    pairs = [pair.split("=") for pair in defaults.split()]

    @_emitter
    def emit(context: KernelContext) -> Elementwise:
        numbers = tuple(context.number(name, float(default)) for name, default in pairs)
        return Elementwise(context.node.operator, context.node.inputs, numbers)

    return emit


@_emitter
def clip(context: KernelContext) -> Elementwise:
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


@_emitter
def power(context: KernelContext) -> Elementwise:
    """Compute powers in the type of the base; negative powers of integers are not covered."""
    base, exponent = context.dtype(0), context.dtype(1)
    if is_integer(base):
        require(is_integer(exponent))
    if is_integer(base) and exponent.kind == "i":
        known = context.parameter(1)
        require(known is not None and bool(np.all(known >= np.zeros((), known.dtype))))
    return Elementwise("Pow", context.node.inputs)


@_emitter
def is_infinite(context: KernelContext) -> Elementwise:
    positive = bool(context.integer("detect_positive", 1))
    negative = bool(context.integer("detect_negative", 1))
    require(positive or negative)
    sign = "" if positive and negative else "Positive" if positive else "Negative"
    return Elementwise(f"Is{sign}Inf", context.node.inputs)


@_emitter
def selu(context: KernelContext) -> Elementwise:
    old = context.version < 6
    alpha = context.number("alpha", 1.6732 if old else 1.67326319217681884765625)
    gamma = context.number("gamma", 1.0507 if old else 1.05070102214813232421875)
    return Elementwise("Selu", context.node.inputs, (alpha, gamma))


@_emitter
def gelu(context: KernelContext) -> Elementwise:
    is_tanh = context.text("approximate", "none") == "tanh"
    return Elementwise("GeluTanh" if is_tanh else "Gelu", context.node.inputs)


@_emitter
def modulo(context: KernelContext) -> Elementwise:
    return Elementwise("Fmod" if context.integer("fmod", 0) else "Mod", context.node.inputs)


@_emitter
def bit_shift(context: KernelContext) -> Elementwise:
    direction = "Right" if context.text("direction", "") == "RIGHT" else "Left"
    return Elementwise(f"Shift{direction}", context.node.inputs)


@_emitter
def prelu(context: KernelContext) -> Elementwise:
    require(context.version >= 7)
    return Elementwise("PRelu", context.node.inputs)


@_emitter
def cast(context: KernelContext) -> Elementwise:
    return Elementwise("Cast", context.node.inputs[:1])
