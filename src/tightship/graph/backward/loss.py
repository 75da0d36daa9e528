"""Gradients of losses, and losses for graphs that have none."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tightship.errors import GraphError
from tightship.graph.backward.site import FLOATS, Rule, Site
from tightship.graph.backward.tape import Tape
from tightship.graph.ir import Graph, Value
from tightship.graph.layout import DType

_Gradients = Iterator[tuple[int, str]]


def _cross_entropy(at: Site) -> _Gradients:
    """Reads the logarithms of the probabilities, over which the gradient may be written."""
    if at.wants(0):
        log = at.tape.save(at.node, 1, at.type(at.x(0)))
        operands = (at.dy, log, *at.node.inputs[1:])
        yield 0, at.own("SoftmaxCrossEntropyLossGrad", *operands)[0]


def _likelihood(at: Site) -> _Gradients:
    """Reads the labels alone."""
    if at.wants(0):
        operands = (at.dy, *at.node.inputs[1:])
        shape = at.shape(at.x(0))
        yield 0, at.own("NegativeLogLikelihoodLossGrad", *operands, shape=shape)[0]


LOSSES: Mapping[str, Rule] = {
    "NegativeLogLikelihoodLoss": _likelihood,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}


def with_cross_entropy(graph: Graph, output: str, target: str = "target") -> Graph:
    """A graph that ends in the mean cross entropy of scores and a new input of labels.

    Args:
        graph: Its output `output` holds scores, classes on axis 1.
        output: The scores; no output any more.
        target: What the input of int64 labels is called; the loss is `<output>.loss`.

    Raises:
        GraphError: The scores are no floats of a known shape with at least two axes.
    """
    scores = _float_output(graph, output)
    if len(scores.static_shape) < 2:
        raise GraphError(
            f"`{output}` cannot have a cross entropy: it has shape {scores.shape}, and classes are "
            "on axis 1, behind the batch."
        )
    batch, _, *space = scores.static_shape
    labels = Value(target, DType.INT64, (batch, *space))
    tape = Tape(graph)
    kind = (scores.dtype or DType.FLOAT32, ())
    (loss,) = tape.write("SoftmaxCrossEntropyLoss", (output, target), [kind], {})
    return _ending_in(tape, output, {loss: f"{output}.loss"}, labels)


def with_squared_error(graph: Graph, output: str, target: str = "target") -> Graph:
    """A graph that ends in the mean squared difference of an output and a new input.

    Args:
        graph: A graph with static shapes.
        output: A float output; none any more.
        target: What the input of the output's type is called; the loss is `<output>.loss`.

    Raises:
        GraphError: The output is no float of a known shape.
    """
    given = _float_output(graph, output)
    assert given.dtype is not None
    tape = Tape(graph)
    kind = (given.dtype, given.static_shape)
    (difference,) = tape.write("Sub", (output, target), [kind], {})
    (square,) = tape.write("Mul", (difference, difference), [kind], {})
    (loss,) = tape.write("ReduceMean", (square,), [(given.dtype, ())], {"keepdims": 0})
    names = {difference: f"{output}.difference", square: f"{output}.square", loss: f"{output}.loss"}
    return _ending_in(tape, output, names, replace(given, name=target))


def _float_output(graph: Graph, output: str) -> Value:
    value = graph.value(output)
    if output not in graph.outputs or not value.is_static or value.dtype not in FLOATS:
        raise GraphError(
            f"`{output}` cannot have a loss: it must be an output of floats whose shape is known, "
            f"and is {value.dtype} {value.shape}. Outputs are {', '.join(graph.outputs)}."
        )
    return value


def _ending_in(tape: Tape, output: str, names: Mapping[str, str], target: Value) -> Graph:
    graph = tape.graph
    if target.name in graph.values or target.name in graph.inputs:
        raise GraphError(f"`{target.name}` is a value of the graph; give the target another name.")
    for draft, wanted in names.items():
        tape.call(draft, wanted)
    nodes = tape.nodes()
    loss = tape.final(list(names)[-1])
    outputs = dict.fromkeys(loss if name == output else name for name in graph.outputs)
    return replace(
        graph,
        inputs=(*graph.inputs, target.name),
        outputs=tuple(outputs),
        nodes=nodes,
        values={**tape.values(), target.name: target},
        constants={**graph.constants, **tape.constants},
    )
