"""Gradients of elementwise operators, with broadcasting."""

from collections.abc import Callable, Iterator

from tightship.graph.backward.gradient_context import GradientContext, Rule
from tightship.graph.layout import DType

_Gradients = Iterator[tuple[int, str]]


def _unary(write: Callable[[GradientContext], str]) -> Rule:
    """Make the rule of an operator whose only input with a gradient is its first."""

    def rule(at: GradientContext) -> _Gradients:
        if at.wants(0):
            yield 0, write(at)

    return rule


def add(at: GradientContext) -> _Gradients:
    for index in reversed(range(len(at.node.inputs))):
        if at.wants(index):
            yield index, at.summed_to(at.dy, at.x(index))


def subtract(at: GradientContext) -> _Gradients:
    if at.wants(1):
        yield 1, at.op("Neg", at.summed_to(at.dy, at.x(1)))
    if at.wants(0):
        yield 0, at.summed_to(at.dy, at.x(0))


def multiply(at: GradientContext) -> _Gradients:
    """Read the other factor."""
    for index in (1, 0):
        if at.wants(index):
            yield index, at.summed_to(at.op("Mul", at.dy, at.x(1 - index)), at.x(index))


def divide(at: GradientContext) -> _Gradients:
    """Read the divisor; for the divisor's gradient the quotient as well."""
    if at.wants(1):
        ratio = at.op("Div", at.op("Mul", at.dy, at.y), at.x(1))
        yield 1, at.op("Neg", at.summed_to(ratio, at.x(1)))
    if at.wants(0):
        yield 0, at.summed_to(at.op("Div", at.dy, at.x(1)), at.x(0))


def mean(at: GradientContext) -> _Gradients:
    share = at.scaled(at.dy, 1 / len(at.node.inputs))
    for index in reversed(range(len(at.node.inputs))):
        if at.wants(index):
            yield index, at.summed_to(share, at.x(index))


def extreme(at: GradientContext) -> _Gradients:
    """Read inputs and output; equal inputs share the gradient evenly."""
    kind = at.dtype(at.y)
    hits = [
        at.cast(at.op("Equal", at.x(index), at.y, dtype=DType.BOOL), kind)
        for index in range(len(at.node.inputs))
    ]
    count = hits[0] if len(hits) == 1 else at.op("Sum", *hits)
    share = at.op("Div", at.dy, count)
    for index in reversed(range(len(hits))):
        if at.wants(index):
            yield index, at.summed_to(at.op("Mul", share, hits[index]), at.x(index))


def power(at: GradientContext) -> _Gradients:
    """Read the base; for the exponent's gradient the power as well."""
    if at.wants(1):
        logarithm = at.op("Mul", at.y, at.op("Log", at.x(0)))
        yield 1, at.summed_to(at.op("Mul", at.dy, logarithm), at.x(1))
    if not at.wants(0):
        return
    number = _number(at, 1)
    if number in (2.0, 3.0):
        gradient = at.dy
        for _ in range(2 if number == 3.0 else 1):
            gradient = at.op("Mul", gradient, at.x(0))
        yield 0, at.scaled(gradient, number)
        return
    if number is not None:
        slope = at.op("Pow", at.x(0), at.number(number - 1, at.x(0)))
        yield 0, at.scaled(at.op("Mul", at.dy, slope), number)
        return
    exponent = at.cast(at.x(1), at.dtype(at.x(0)))
    less = at.op("Sub", exponent, at.number(1, exponent))
    slope = at.op("Mul", at.op("Pow", at.x(0), less), exponent)
    yield 0, at.summed_to(at.op("Mul", at.dy, slope), at.x(0))


def _number(at: GradientContext, index: int) -> float | None:
    """Return an input that is a constant number, and does not widen the output; else None."""
    known = at.tape.constant(at.x(index))
    if known is None or any(n != 1 for n in known.shape) or at.shape(at.y) != at.shape(at.x(0)):
        return None
    return float(known.array().reshape(()))


def where(at: GradientContext) -> _Gradients:
    """Read the condition."""
    zero, kind = at.number(0, at.dy), at.dtype(at.dy)
    if at.wants(2):
        yield 2, at.summed_to(at.op("Where", at.x(0), zero, at.dy, dtype=kind), at.x(2))
    if at.wants(1):
        yield 1, at.summed_to(at.op("Where", at.x(0), at.dy, zero, dtype=kind), at.x(1))


def _reciprocal(at: GradientContext) -> str:
    """Read the output."""
    return at.op("Neg", at.op("Mul", at.op("Mul", at.dy, at.y), at.y))


def _root(at: GradientContext) -> str:
    """Read the output."""
    return at.op("Div", at.scaled(at.dy, 0.5), at.y)


abs_rule = _unary(lambda at: at.op("Mul", at.dy, at.op("Sign", at.x())))
cast = _unary(lambda at: at.cast(at.dy, at.dtype(at.x())))
cos = _unary(lambda at: at.op("Neg", at.op("Mul", at.dy, at.op("Sin", at.x()))))
exp = _unary(lambda at: at.op("Mul", at.dy, at.y))
log = _unary(lambda at: at.op("Div", at.dy, at.x()))
neg = _unary(lambda at: at.op("Neg", at.dy))
reciprocal = _unary(_reciprocal)
sin = _unary(lambda at: at.op("Mul", at.dy, at.op("Cos", at.x())))
sqrt = _unary(_root)
