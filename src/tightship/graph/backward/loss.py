"""Gradients of losses, and losses for graphs that have none."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tightship.deprecated import takes_old_parameters
from tightship.errors import GraphError, InputError
from tightship.graph.backward.gradient_context import FLOATS, GradientContext
from tightship.graph.backward.operators import DOMAIN
from tightship.graph.backward.tape import Tape
from tightship.graph.ir import Graph, Value
from tightship.graph.layout import DType, element_count
from tightship.public_calls import public_call

_Gradients = Iterator[tuple[int, str]]


def cross_entropy(at: GradientContext) -> _Gradients:
    """Read the log probabilities, which the gradient may overwrite."""
    if not at.wants(0):
        return
    log = at.tape.save(at.node, 1, at.type(at.x(0)))
    if any(at.gradients[1:]):
        types, source = [at.type(log)], (DOMAIN, at.node.version)
        reads = (at.gradients[1], log)
        yield 0, at.tape.write("LogSoftmaxGrad", reads, types, {"axis": 1}, source)[0]
    if at.gradients[0]:
        operands = (at.dy, log, *at.node.inputs[1:])
        yield 0, at.own("SoftmaxCrossEntropyLossGrad", *operands)[0]


def likelihood(at: GradientContext) -> _Gradients:
    """Read only the labels."""
    if at.wants(0):
        operands = (at.dy, *at.node.inputs[1:])
        shape = at.shape(at.x(0))
        yield 0, at.own("NegativeLogLikelihoodLossGrad", *operands, shape=shape)[0]


IGNORED = -100
"""Label of targets that a loss ignores, as in torch."""


@public_call
@takes_old_parameters("with_cross_entropy")
def with_cross_entropy(
    graph: Graph, output: str, labels: str = "target", *, classes_axis: int = 1
) -> Graph:
    """Make a graph that ends in the mean cross entropy of scores and a new input of labels.

    Args:
        graph: Graph whose output `output` holds scores.
        output: Name of the scores, which are no longer an output.
        labels: Name of the int64 input of labels; labels of `IGNORED` do not count. The loss is
            `<output>.loss`.
        classes_axis: Axis of classes: 1, or the last one.

    Raises:
        InputError: There are no classes on such an axis.
        GraphError: The scores are not floats of a known shape of rank two or more.
    """
    scores = _float_output(graph, output)
    shape = scores.static_shape
    if len(shape) < 2:
        raise GraphError(
            f"`{output}` cannot have a cross entropy: it has shape {scores.shape}, and classes are "
            "on axis 1, behind the batch."
        )
    axis, target = classes_axis, labels
    if axis not in (1, len(shape) - 1):
        raise InputError(
            f"`classes_axis` is {axis}; classes are on axis 1 or the last, {len(shape) - 1}."
        )
    kind = Value(target, DType.INT64, (*shape[:axis], *shape[axis + 1 :]))
    tape = Tape(graph)
    dtype = scores.dtype or DType.FLOAT32
    operands, names = (output, target), {}
    if axis > 1:
        count, classes = element_count(shape[:axis]), shape[axis]
        sizes = [tape.integers(each) for each in ((count, classes), (count,))]
        (rows,) = tape.write("Reshape", (output, sizes[0]), [(dtype, (count, classes))], {})
        (flat,) = tape.write("Reshape", (target, sizes[1]), [(DType.INT64, (count,))], {})
        operands, names = (rows, flat), {rows: f"{output}.rows", flat: f"{target}.rows"}
    attributes = {"ignore_index": IGNORED}
    (loss,) = tape.write("SoftmaxCrossEntropyLoss", operands, [(dtype, ())], attributes)
    return _ending_in(tape, output, {**names, loss: f"{output}.loss"}, kind)


@public_call
@takes_old_parameters("with_squared_error")
def with_squared_error(graph: Graph, output: str, labels: str = "target") -> Graph:
    """Make a graph that ends in the mean squared difference of an output and a new input.

    Args:
        graph: Graph with static shapes.
        output: Name of a float output, which is no longer one.
        labels: Name of the input of the output's type; the loss is `<output>.loss`.

    Raises:
        GraphError: The output is not a float tensor of known shape.
    """
    given = _float_output(graph, output)
    assert given.dtype is not None
    tape = Tape(graph)
    kind = (given.dtype, given.static_shape)
    (difference,) = tape.write("Sub", (output, labels), [kind], {})
    (square,) = tape.write("Mul", (difference, difference), [kind], {})
    (loss,) = tape.write("ReduceMean", (square,), [(given.dtype, ())], {"keepdims": 0})
    names = {difference: f"{output}.difference", square: f"{output}.square", loss: f"{output}.loss"}
    return _ending_in(tape, output, names, replace(given, name=labels))


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
        raise GraphError(
            f"`{target.name}` is a value of the model; give what the loss compares with another "
            "name (`labels` of `train`)."
        )
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
