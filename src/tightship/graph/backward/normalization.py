"""Gradients of normalizations, which read the input, and statistics that the forward writes."""

from collections.abc import Iterator, Sequence
from math import prod

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.backward.operators import DOMAIN, Attributes

_Gradients = Iterator[tuple[int, str]]


def given(at: GradientContext) -> _Gradients:
    """Differentiate a batch normalization by given statistics."""
    if at.integer("training_mode", 0):
        raise at.refusal("needs the statistics of the batch; see `with_batch_statistics`")
    mean, variance = at.x(3), at.x(4)
    keep = (at.wants(0), at.wants(1) or at.wants(4), at.wants(2) or at.wants(3))
    found = dict(_batch(at, mean, variance, keep, is_training=0))
    yield from ((index, gradient) for index, gradient in found.items() if at.wants(index))
    if not (at.wants(3) or at.wants(4)):
        return
    raised = at.op("Add", variance, at.number(at.real("epsilon", 1e-5), variance))
    if at.wants(3):
        factor = at.op("Div", at.x(1), at.op("Sqrt", raised))
        yield 3, at.op("Neg", at.op("Mul", found[2], factor))
    if at.wants(4):
        yield 4, at.scaled(at.op("Div", at.op("Mul", found[1], at.x(1)), raised), -0.5)


def by_batch(at: GradientContext) -> _Gradients:
    """Differentiate a batch normalization by the batch's statistics, which it writes."""
    _, mean, variance = at.node.outputs
    if at.wants(0):
        yield from _through_statistics(at, mean)
    keep = (at.wants(0), at.wants(1), at.wants(2))
    if at.gradients[0]:
        yield from _batch(at, mean, variance, keep, is_training=1)


def _through_statistics(at: GradientContext, mean: str) -> _Gradients:
    """Write the contribution of gradients of the batch's mean and variance themselves."""
    shape = at.shape(at.x(0))
    channel = (shape[1], *(1 for _ in shape[2:]))
    share = shape[1] / max(prod(shape), 1)
    if at.gradients[1]:
        each = at.reshaped(at.scaled(at.gradients[1], share), channel)
        yield 0, at.expanded(each, shape)
    if at.gradients[2]:
        each = at.reshaped(at.scaled(at.gradients[2], 2 * share), channel)
        yield 0, at.op("Mul", at.op("Sub", at.x(0), at.reshaped(mean, channel)), each)


def _batch(
    at: GradientContext, mean: str, variance: str, keep: Sequence[bool], *, is_training: int
) -> _Gradients:
    if not any(keep):
        return
    found = at.own(
        "BatchNormalizationGrad", at.dy, at.x(0), at.x(1), mean, variance,
        keep=keep, training_mode=is_training,
    )  # fmt: skip
    yield from ((index, found[index]) for index in (2, 1, 0) if found[index])


def layer(at: GradientContext) -> _Gradients:
    """Read the input, its means and inverse deviations."""
    if any(at.gradients[1:]):
        raise at.refusal("is known for its first output only")
    keep = (at.wants(0), at.wants(1), at.wants(2))
    if not any(keep):
        return
    dtype, shape = at.type(at.x(0))
    axis = at.integer("axis", -1) % len(shape)
    rows = (*shape[:axis], *(1 for _ in shape[axis:]))
    mean, inverse = (at.tape.save(at.node, index, (dtype, rows)) for index in (1, 2))
    found = at.own("LayerNormalizationGrad", at.dy, at.x(0), at.x(1), mean, inverse, keep=keep)
    yield from ((index, found[index]) for index in (2, 1, 0) if found[index])


def root_mean_square(at: GradientContext) -> _Gradients:
    """Read the input, whose root mean squares are recomputed."""
    x, dy = at.x(0), at.dy
    shape = at.shape(x)
    axes = range(at.integer("axis", -1) % len(shape), len(shape))
    square = at.op("Mul", x, x)
    raised = at.op("Add", _mean(at, square, axes), at.number(at.real("epsilon", 1e-5), x))
    inverse = at.op("Reciprocal", at.op("Sqrt", raised))
    normalized = at.op("Mul", x, inverse)
    if at.wants(1):
        yield 1, at.summed_to(at.op("Mul", dy, normalized), at.x(1))
    if at.wants(0):
        scaled = at.op("Mul", dy, at.x(1))
        along = _mean(at, at.op("Mul", scaled, normalized), axes)
        rest = at.op("Sub", scaled, at.op("Mul", normalized, along))
        yield 0, at.op("Mul", rest, inverse)


def instance(at: GradientContext) -> _Gradients:
    """Differentiate by groups of one channel."""
    yield from _by_groups(at, at.shape(at.x(0))[1])


def group(at: GradientContext) -> _Gradients:
    """Differentiate by groups with a scale for each channel."""
    yield from _by_groups(at, at.integer("num_groups", 1))


def _by_groups(at: GradientContext, groups: int) -> _Gradients:
    """Write a batch normalization's gradient with a channel for each group of each sample.

    It reads the input, whose statistics are recomputed.
    """
    shape = at.shape(at.x(0))
    rows = (shape[0], groups, prod(shape[1:]) // groups)
    x, scale = at.reshaped(at.x(0), rows), at.x(1)
    count = shape[1]
    parts = (shape[0], count, prod(shape[1:]) // count)
    dy = at.reshaped(at.dy, parts)
    if at.wants(2):
        yield 2, at.reshaped(at.summed(dy, (0, 2)), (count,))
    mean = _mean(at, x, (2,))
    centred = at.op("Sub", x, mean)
    variance = _mean(at, at.op("Mul", centred, centred), (2,))
    epsilon = at.real("epsilon", 1e-5)
    if at.wants(1):
        raised = at.op("Add", variance, at.number(epsilon, x))
        inverse = at.op("Reciprocal", at.op("Sqrt", raised))
        sums = at.summed(at.op("Mul", dy, at.reshaped(centred, parts)), (2,))
        grouped = at.reshaped(sums, (shape[0], groups, count // groups))
        each = at.reshaped(at.op("Mul", grouped, inverse), (shape[0], count))
        yield 1, at.reshaped(at.summed(each, (0,)), (count,))
    if at.wants(0):
        scaled = at.op("Mul", dy, at.reshaped(scale, (count, 1)))
        channels = (1, rows[0] * groups, rows[2])
        ones = at.tape.filled(1, at.dtype(x), channels[1:2])
        attributes = {"epsilon": epsilon, "training_mode": 1}
        operands = [at.reshaped(scaled, channels), at.reshaped(x, channels), ones]
        operands += [at.reshaped(each, channels[1:2]) for each in (mean, variance)]
        types = [at.type(operands[0]), None, None]
        source = (DOMAIN, at.node.version)
        found = at.tape.write("BatchNormalizationGrad", operands, types, attributes, source)
        yield 0, at.reshaped(found[0], shape)


def _mean(at: GradientContext, name: str, axes: Sequence[int]) -> str:
    """Average over axes, which stay as axes of length 1."""
    shape = [1 if axis in axes else length for axis, length in enumerate(at.shape(name))]
    return at.op(
        "ReduceMean", name, at.tape.integers(axes), shape=shape, attributes={"keepdims": 1}
    )


def local_response(at: GradientContext) -> _Gradients:
    """Read the input, whose means of squares over neighbouring channels are recomputed."""
    if not at.wants(0):
        return
    x, dy, size = at.x(), at.dy, at.integer("size", 1)
    alpha, beta = at.real("alpha", 1e-4), at.real("beta", 0.75)
    before = (size - 1) // 2
    squares = _near(at, at.op("Mul", x, x), before, size - 1 - before)
    base = at.op("Add", at.scaled(squares, alpha), at.number(at.real("bias", 1.0), x))
    factor = at.op("Pow", base, at.number(-beta, x))
    drawn = at.op("Div", at.op("Mul", at.op("Mul", dy, x), factor), base)
    along = at.op("Mul", x, _near(at, drawn, size - 1 - before, before))
    yield 0, at.op("Sub", at.op("Mul", dy, factor), at.scaled(along, 2 * alpha * beta))


def _near(at: GradientContext, name: str, before: int, after: int) -> str:
    """Average over `before` and `after` neighbouring channels; zero beyond the edge."""
    shape = at.shape(name)
    rows = (shape[0], 1, shape[1], prod(shape[2:]))
    attributes: Attributes = {
        "kernel_shape": (before + 1 + after, 1), "pads": (before, 0, after, 0),
        "strides": (1, 1), "count_include_pad": 1,
    }  # fmt: skip
    mean = at.op("AveragePool", at.reshaped(name, rows), shape=rows, attributes=attributes)
    return at.reshaped(mean, shape)
