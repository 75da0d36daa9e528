"""Gradients of activations: one operator each, of the output where that suffices."""

from collections.abc import Iterator

from tightship.graph.backward.gradient_context import GradientContext
from tightship.graph.layout import DType

_Gradients = Iterator[tuple[int, str]]


def of_output(at: GradientContext) -> _Gradients:
    """Read the output, so that the input is free at once."""
    if at.wants(0):
        yield 0, at.own(f"{at.node.operator}Grad", at.dy, at.y)[0]


def of_input(at: GradientContext) -> _Gradients:
    """Read the input."""
    if at.wants(0):
        yield 0, at.own(f"{at.node.operator}Grad", at.dy, at.x())[0]


def clip(at: GradientContext) -> _Gradients:
    """Read the input; a limit has the gradient of what is beyond it."""
    if at.wants(0):
        yield 0, at.own("ClipGrad", at.dy, at.x(), at.optional(1), at.optional(2))[0]
    for index, operator in ((1, "Less"), (2, "Greater")):
        if at.wants(index):
            beyond = at.op(operator, at.x(), at.x(index), dtype=DType.BOOL)
            held = _where(at, beyond, at.dy, at.number(0, at.dy))
            yield index, at.summed_to(held, at.x(index))


def _where(at: GradientContext, condition: str, yes: str, no: str) -> str:
    return at.op("Where", condition, yes, no, dtype=at.dtype(at.dy))


def _over(at: GradientContext, name: str, limit: float = 0.0) -> str:
    """Write where a value is above a number."""
    return at.op("Greater", name, at.number(limit, name), dtype=DType.BOOL)


def prelu(at: GradientContext) -> _Gradients:
    """Read the input and the slope."""
    is_over = _over(at, at.x())
    if at.wants(1):
        below = _where(at, is_over, at.number(0, at.dy), at.op("Mul", at.dy, at.x()))
        yield 1, at.summed_to(below, at.x(1))
    if at.wants(0):
        yield 0, _where(at, is_over, at.dy, at.op("Mul", at.dy, at.x(1)))


def _exponential(at: GradientContext, above: float, scale: float, shift: float) -> str:
    """Read the output `y`: the slope is `above` where it is over 0, else `scale * y + shift`."""
    below = at.op("Add", at.scaled(at.y, scale), at.number(shift, at.y))
    slope = _where(at, _over(at, at.y), at.number(above, at.y), below)
    return at.op("Mul", at.dy, slope)


def selu(at: GradientContext) -> _Gradients:
    if at.wants(0):
        gamma = at.real("gamma", 1.0507009873554805)
        shift = gamma * at.real("alpha", 1.6732632423543772)
        yield 0, _exponential(at, gamma, 1.0, shift)


def celu(at: GradientContext) -> _Gradients:
    if at.wants(0):
        yield 0, _exponential(at, 1.0, 1 / at.real("alpha", 1.0), 1.0)


def mish(at: GradientContext) -> _Gradients:
    """Read the input: `t + x * sigmoid(x) * (1 - t * t)`, where `t` is `y / x`."""
    if not at.wants(0):
        return
    x = at.x()
    t = at.op("Tanh", at.op("Softplus", x))
    rest = at.op("Sub", at.number(1, x), at.op("Mul", t, t), shape=at.shape(x))
    bent = at.op("Mul", at.op("Mul", x, at.op("Sigmoid", x)), rest)
    yield 0, at.op("Mul", at.dy, at.op("Add", t, bent))


def softsign(at: GradientContext) -> _Gradients:
    """Read the input."""
    if at.wants(0):
        below = at.op("Add", at.op("Abs", at.x()), at.number(1, at.x()))
        yield 0, at.op("Div", at.op("Div", at.dy, below), below)


def thresholded(at: GradientContext) -> _Gradients:
    """Read the input."""
    if at.wants(0):
        is_over = _over(at, at.x(), at.real("alpha", 1.0))
        yield 0, _where(at, is_over, at.dy, at.number(0, at.dy))


def softmax(at: GradientContext) -> _Gradients:
    """Read the output."""
    if at.wants(0):
        yield 0, at.own(f"{at.node.operator}Grad", at.dy, at.y)[0]


def dropout(at: GradientContext) -> _Gradients:
    """Read the mask of kept elements; nothing if no element is dropped."""
    if not at.wants(0):
        return
    is_training = at.node.version >= 12 and at.has(2)
    if not is_training or not _flag(at):
        yield 0, at.dy
        return
    ratio = at.parameter(1, "ratio")
    rate = 0.5 if ratio is None else float(ratio.reshape(()))
    mask = at.tape.save(at.node, 1, (DType.BOOL, at.shape(at.y)))
    kept = at.op("Where", mask, at.dy, at.number(0, at.dy), dtype=at.dtype(at.dy))
    yield 0, at.scaled(kept, 1 / (1 - rate) if rate < 1 else 0.0)


def _flag(at: GradientContext) -> bool:
    training = at.parameter(2, "training_mode")
    return training is not None and bool(training.reshape(()))
