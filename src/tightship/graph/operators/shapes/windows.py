"""Symbolic shape rules of convolution, pooling and resizing."""

from collections.abc import Sequence
from functools import partial

from tightship.graph.length import quotient
from tightship.graph.operators.shapes.shape_context import NoRuleError, Shape, ShapeContext


def _windowed(context: ShapeContext, channels: int, kernel: Sequence[int]) -> list[Shape]:
    """Compute the shape of convolution or pooling with a window over each spatial axis."""
    shape, rank = context.shape(), len(kernel)
    strides = context.integers("strides") or (1,) * rank
    dilations = context.integers("dilations") or (1,) * rank
    pads = context.integers("pads") or (0,) * (2 * rank)
    automatic = context.node.attributes.get("auto_pad", "NOTSET")
    rounds_up = context.integer("ceil_mode", 0)
    if automatic in ("SAME_UPPER", "SAME_LOWER") and not rounds_up:
        return [(shape[0], channels, *map(_parts_of, shape[2:], strides))]
    if automatic not in ("NOTSET", "VALID"):
        raise NoRuleError
    spatial = []
    for axis in range(rank):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        length, step = shape[2 + axis] + pads[axis], strides[axis]
        room = length + pads[rank + axis] - reach
        if room < 0:
            raise NoRuleError
        steps = _parts_of(room, step) if rounds_up or step == 1 else room // step
        if rounds_up and steps * step >= length:  # versions of ONNX differ
            raise NoRuleError
        spatial.append(steps + 1)
    return [(shape[0], channels, *spatial)]


def _parts_of(length: int, step: int) -> int:
    """Count the steps that it takes to pass a length."""
    return length if step == 1 else -(-length // step)


def transposed_convolution(context: ShapeContext) -> list[Shape]:
    shape, weights = context.shape(), context.shape(1)
    rank = len(shape) - 2
    if "output_shape" in context.node.attributes or shape[1] != weights[0]:
        raise NoRuleError
    if context.node.attributes.get("auto_pad", "NOTSET") != "NOTSET":
        raise NoRuleError
    strides = context.integers("strides") or (1,) * rank
    dilations = context.integers("dilations") or (1,) * rank
    pads = context.integers("pads") or (0,) * (2 * rank)
    extra = context.integers("output_padding") or (0,) * rank
    spatial = []
    for axis in range(rank):
        reach = dilations[axis] * (weights[2 + axis] - 1) + 1 + extra[axis]
        before = shape[2 + axis] * strides[axis] - strides[axis]
        spatial.append(before + (reach - pads[axis] - pads[rank + axis]))
    return [(shape[0], weights[1] * context.integer("group", 1), *spatial)]


def resize(context: ShapeContext) -> list[Shape]:
    """Scale by sizes or factors that are known."""
    node, shape = context.node, context.shape()
    if node.version < 11 or not {"axes", "keep_aspect_ratio_policy"}.isdisjoint(node.attributes):
        raise NoRuleError
    if len(node.inputs) > 3 and node.inputs[3]:
        sizes = context.elements[3]
        if sizes is None:
            raise NoRuleError
        return [tuple(sizes)]
    factors = context.constants[2] if len(node.inputs) > 2 else None
    if factors is None or factors.shape != (len(shape),):
        raise NoRuleError
    return [tuple(map(_scaled, shape, factors.array().tolist()))]


def _scaled(length: int, factor: float) -> int:
    """Scale by a whole factor, or the inverse of a power of two: exact in floats."""
    if factor >= 1 and factor == int(factor):
        return length * int(factor)
    parts = int(1 / factor) if 0 < factor < 1 else 0
    if parts & (parts - 1) or parts * factor != 1:
        raise NoRuleError
    return length // parts


def convolution(context: ShapeContext, weights_index: int = 1) -> list[Shape]:
    weights = context.shape(weights_index)
    if context.shape()[1] != weights[1] * context.integer("group", 1):
        raise NoRuleError
    return _windowed(context, weights[0], weights[2:])


def pooling(context: ShapeContext) -> list[Shape]:
    kernel = context.integers("kernel_shape")
    if kernel is None or len(context.node.writes) > 1:
        raise NoRuleError
    return _windowed(context, context.shape()[1], kernel)


def global_pooling(context: ShapeContext) -> list[Shape]:
    shape = context.shape()
    return [(*shape[:2], *[1] * (len(shape) - 2))]


def to_depth(context: ShapeContext) -> list[Shape]:
    """Compute the shape after blocks of pixels become channels."""
    images, channels, *spatial = context.shape()
    size = context.integer("blocksize", 1)
    parts = [quotient(length, size) for length in spatial]
    if None in parts:
        raise NoRuleError
    return [(images, channels * size * size, *[part for part in parts if part is not None])]


def to_space(context: ShapeContext) -> list[Shape]:
    """Compute the shape after channels become blocks of pixels."""
    images, channels, *spatial = context.shape()
    size = context.integer("blocksize", 1)
    return [(images, channels // (size * size), *[length * size for length in spatial])]


q_linear_conv = partial(convolution, weights_index=3)
