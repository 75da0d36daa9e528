"""Gradients of reductions: the gradient of a sum goes to each of its terms."""

from collections.abc import Callable, Iterator
from math import prod

from tightship.graph.backward.gradient_context import GradientContext, Rule
from tightship.graph.layout import DType

_Gradients = Iterator[tuple[int, str]]


def _reduction(write: Callable[[GradientContext, str, str], str]) -> Rule:
    """Make the rule of `write(context, gradient, output)`, whose operands keep the axes."""

    def rule(at: GradientContext) -> _Gradients:
        if at.wants(0):
            kept = _kept_shape(at)
            yield 0, write(at, at.reshaped(at.dy, kept), at.y)

    return rule


def _kept_shape(at: GradientContext) -> tuple[int, ...]:
    """Return the shape of the output with its axes kept."""
    shape = at.shape(at.x())
    axes = at.axes(1)
    if not axes:
        if at.integer("noop_with_empty_axes", 0):
            return shape
        axes = tuple(range(len(shape)))
    reduced = {axis % max(len(shape), 1) for axis in axes}
    return tuple(1 if axis in reduced else length for axis, length in enumerate(shape))


def _sum(at: GradientContext, dy: str, _: str) -> str:
    return at.expanded(dy, at.shape(at.x()))


def _mean(at: GradientContext, dy: str, _: str) -> str:
    count = prod(at.shape(at.x())) // max(prod(at.shape(dy)), 1)
    return at.expanded(at.scaled(dy, 1 / max(count, 1)), at.shape(at.x()))


def _sum_of_squares(at: GradientContext, dy: str, _: str) -> str:
    """Read the input."""
    return at.op("Mul", at.scaled(dy, 2), at.x())


def _norm(at: GradientContext, dy: str, y: str) -> str:
    """Read input and output; if all elements are zero, so is their gradient."""
    kind = at.dtype(y)
    tiny = 2.0**-14 if kind is DType.FLOAT16 else 2.0**-126
    length = at.op("Max", at.reshaped(y, at.shape(dy)), at.number(tiny, y))
    return at.op("Mul", dy, at.op("Div", at.x(), length))


def _absolute(at: GradientContext, dy: str, _: str) -> str:
    """Read the input."""
    return at.op("Mul", dy, at.op("Sign", at.x()))


def _log_of_exponentials(at: GradientContext, dy: str, y: str) -> str:
    """Read input and output."""
    share = at.op("Exp", at.op("Sub", at.x(), at.reshaped(y, at.shape(dy))))
    return at.op("Mul", share, dy)


def _extreme(at: GradientContext, dy: str, y: str) -> str:
    """Read input and output; equal elements share the gradient evenly."""
    kept, kind = at.shape(dy), at.dtype(dy)
    hit = at.op("Equal", at.x(), at.reshaped(y, kept), dtype=DType.BOOL)
    hits = at.cast(hit, kind)
    axes = [axis for axis, n in enumerate(at.shape(hits)) if kept[axis] != n]
    return at.op("Mul", hits, at.op("Div", dy, at.summed(hits, axes)))


reduce_l1 = _reduction(_absolute)
reduce_l2 = _reduction(_norm)
reduce_log_sum_exp = _reduction(_log_of_exponentials)
reduce_extreme = _reduction(_extreme)
reduce_mean = _reduction(_mean)
reduce_sum = _reduction(_sum)
reduce_sum_square = _reduction(_sum_of_squares)
