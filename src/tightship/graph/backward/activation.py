"""Gradients of activations: one operator each, of the output where that says enough."""

from collections.abc import Iterator, Mapping

from tightship.graph.backward.site import Rule, Site
from tightship.graph.layout import DType

_Gradients = Iterator[tuple[int, str]]

OF_OUTPUT = ("Relu", "Sigmoid", "Tanh")
"""Activations whose gradient reads the output, so that the input is free at once."""
OF_INPUT = (
    "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Softplus", "Swish",
)  # fmt: skip
"""Activations whose gradient reads the input."""


def _of_output(at: Site) -> _Gradients:
    if at.wants(0):
        yield 0, at.own(f"{at.node.operator}Grad", at.dy, at.y)[0]


def _of_input(at: Site) -> _Gradients:
    if at.wants(0):
        yield 0, at.own(f"{at.node.operator}Grad", at.dy, at.x())[0]


def _clip(at: Site) -> _Gradients:
    """Reads the input; a limit has the gradient of what is beyond it."""
    if at.wants(0):
        yield 0, at.own("ClipGrad", at.dy, at.x(), at.optional(1), at.optional(2))[0]
    for index, operator in ((1, "Less"), (2, "Greater")):
        if at.wants(index):
            beyond = at.op(operator, at.x(), at.x(index), dtype=DType.BOOL)
            held = at.op("Where", beyond, at.dy, at.number(0, at.dy), dtype=at.dtype(at.dy))
            yield index, at.summed_to(held, at.x(index))


def _softmax(at: Site) -> _Gradients:
    """Reads the output."""
    if at.wants(0):
        yield 0, at.own(f"{at.node.operator}Grad", at.dy, at.y)[0]


def _dropout(at: Site) -> _Gradients:
    """Reads the mask of what was kept; nothing where nothing is dropped."""
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


def _flag(at: Site) -> bool:
    training = at.parameter(2, "training_mode")
    return training is not None and bool(training.reshape(()))


ACTIVATIONS: Mapping[str, Rule] = {
    **dict.fromkeys(OF_OUTPUT, _of_output),
    **dict.fromkeys(OF_INPUT, _of_input),
    "Clip": _clip,
    "Dropout": _dropout,
    "LogSoftmax": _softmax,
    "Softmax": _softmax,
}
