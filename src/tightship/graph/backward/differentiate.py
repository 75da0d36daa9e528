"""Writes gradients backward from outputs to the wanted values."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tightship.errors import GraphError
from tightship.graph.backward.batch_statistics import with_batch_statistics
from tightship.graph.backward.gradient_context import (
    FLOATS,
    ControlRule,
    Ends,
    GradientContext,
    Rule,
)
from tightship.graph.backward.operators import Type
from tightship.graph.backward.reach import changing_with, has_no_slope, leading_through
from tightship.graph.backward.tape import Tape
from tightship.graph.constant import Constant, Fill
from tightship.graph.ir import Graph, Node, leading_to
from tightship.graph.operators import body as body_of
from tightship.public_calls import public_call

_HIDING = -1e4
"""Largest value that a mask adds to scores that must not count."""
_LAYERS = frozenset(
    {"BatchNormalization", "BatchNormalizationTraining", "Conv", "ConvTranspose", "Gemm",
     "GroupNormalization", "InstanceNormalization", "LayerNormalization", "PRelu"}
)  # fmt: skip
"""Operators whose constants are weights, even if of one element."""
_SET_UP = {"BatchNormalization": 3, "OneHot": 1, "Resize": 1, "Upsample": 1}
"""Number of inputs of an operator that can be weights; the others are settings."""


@public_call
def parameters(graph: Graph) -> tuple[str, ...]:
    """Find the constants that a model is trained by: floats that a node reads.

    Masks added to scores are left out, and so are single numbers, unless they are weights of a
    layer of one channel.
    """
    return tuple(
        name
        for name, operators in _readers(graph).items()
        if (operators <= _LAYERS or any(length != 1 for length in graph.constants[name].shape))
        and not (operators == {"Add"} and _hides(graph.constants[name]))
    )


def constants_read(graph: Graph) -> tuple[str, ...]:
    """Find the constants of floats that a node reads, by which a model can be trained."""
    return tuple(_readers(graph))


def _readers(graph: Graph) -> dict[str, set[str]]:
    """Map each constant of floats to the operators that read it as more than a setting."""
    readers: dict[str, set[str]] = {}
    for name, operator in _readings(graph):
        if name in graph.constants and graph.constants[name].dtype in FLOATS:
            readers.setdefault(name, set()).add(operator)
    return readers


def _readings(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield names that nodes read as more than settings, in bodies too, with the operators."""
    for node in graph.nodes:
        inner = {name for body in node.subgraphs for name in body.captures}
        count = _SET_UP.get(node.operator)
        for name in node.inputs[:count] if count else node.reads:
            if name not in inner or name in node.inputs:
                yield name, node.operator
        for body in node.subgraphs:
            yield from ((name, each) for name, each in _readings(body) if name in body.captures)


def _hides(constant: Constant) -> bool:
    """Whether a constant is a mask; vectors are biases, and not read."""
    return len(constant.shape) > 1 and bool((constant.array().astype(np.float32) <= _HIDING).any())


@public_call
def backward(
    graph: Graph, of: Iterable[str] | None = None, wrt: Iterable[str] | None = None
) -> Graph:
    """Add the explicit backward path of some values to a graph.

    The forward nodes stay first, in their order. The nodes of the gradients follow, last forward
    node first; if a value is read more than once, an Add joins its gradients as soon as there are
    two. A gradient node reads only the forward values that its rule names, so that all others are
    free after their last forward use. The gradient of `x` is named `d(x)`, unless it is the
    gradient of another value unchanged.

    Args:
        graph: Graph in which values on the path have static shapes.
        of: Float values to differentiate. The gradient of a scalar starts with 1, that of any other
            value `y` is a new input `d(y)`. None means all float outputs.
        wrt: Values whose gradients are wanted, inputs and constants among them. None means
            `parameters`.

    Returns:
        The graph, its outputs followed by the gradients in the order of `wrt`. A gradient that no
            path leads to is a constant of zeros. Known values that depend on elements of `wrt` are
            removed, because these may change between runs.

    Raises:
        GraphError: A name is not a float value of the graph, or the gradient of a node on the path
            is unknown.

    Complexity: O(nodes + reads).
    """
    graph = with_batch_statistics(graph, training_only=True)
    ends = _float_outputs(graph) if of is None else tuple(of)
    targets = parameters(graph) if wrt is None else tuple(wrt)
    defined = _defined(graph)
    for name in (*ends, *targets):
        if name not in defined or graph.value(name).dtype not in FLOATS:
            raise GraphError(
                f"`{name}` has no gradient: it must be an input, a constant or a result of graph "
                f"`{graph.name}`, and hold floats."
            )
    graph = _unlearned(graph, targets)
    walk = _Walk(graph, leading_through(graph, targets))
    given = [name for name in map(walk.start, ends) if name]
    walk.run()
    gradients = [walk.gradient(name) for name in targets]
    nodes = walk.tape.nodes()
    return replace(
        graph,
        inputs=(*graph.inputs, *given),
        outputs=(*graph.outputs, *gradients),
        nodes=nodes,
        values=walk.tape.values(),
        constants={**graph.constants, **walk.tape.constants},
    )


def gradient_path(graph: Graph, ends: Ends, wrt: Sequence[str]) -> Graph:
    """Make a graph of the gradients of some values, from given gradients of others.

    It has no other outputs, and only those forward nodes that a gradient reads.

    Args:
        graph: Graph, possibly the body of a node.
        ends: Floats, each with a name for its gradient, which becomes an input after those of the
            graph; taken names are numbered.
        wrt: Values whose gradients are the outputs, captures among them.

    Raises:
        GraphError: A gradient on the path is unknown, or a shape is.
    """
    graph = _unlearned(with_batch_statistics(graph, training_only=True), wrt)
    walk = _Walk(graph, leading_through(graph, wrt))
    given = [walk.give(value, name) for value, name in ends]
    walk.run()
    outputs = tuple([walk.gradient(name) for name in wrt])
    nodes = leading_to(outputs, walk.tape.nodes())
    read = {*outputs, *(name for node in nodes for name in node.reads)}
    constants = {**graph.constants, **walk.tape.constants}
    return replace(
        graph,
        inputs=(*graph.inputs, *given),
        outputs=outputs,
        nodes=nodes,
        values=walk.tape.values(),
        constants={name: each for name, each in constants.items() if name in read},
        captures=tuple(name for name in graph.captures if name in read),
    )


def _float_outputs(graph: Graph) -> tuple[str, ...]:
    return tuple(name for name in graph.outputs if graph.value(name).dtype in FLOATS)


def _defined(graph: Graph) -> set[str]:
    made = (name for node in graph.nodes for name in node.writes)
    return {*graph.inputs, *graph.constants, *made}


def _unlearned(graph: Graph, targets: Collection[str]) -> Graph:
    """Remove known values that depend on a target's elements, in bodies too."""
    changing = changing_with(graph, targets)
    known = {name: constant for name, constant in graph.known.items() if name not in changing}
    nodes = tuple([_unlearned_node(node, changing) for node in graph.nodes])
    return replace(graph, nodes=nodes, known=known)


def _unlearned_node(node: Node, changing: set[str]) -> Node:
    if not node.subgraphs or changing.isdisjoint(node.reads):
        return node
    attributes = {
        name: _unlearned(value, changing) if isinstance(value, Graph) else value
        for name, value in node.attributes.items()
    }
    return replace(node, attributes=attributes)


class _Walk:
    """Gradients known so far, going through the nodes from the last to the first."""

    def __init__(self, graph: Graph, wanted: set[str]) -> None:
        self.tape = Tape(graph)
        self._wanted = wanted
        self._gradients: dict[str, str] = {}

    def start(self, name: str) -> str | None:
        """Start with a value's own gradient as 1, or as a new input, which is returned.

        Raises:
            GraphError: The value's shape is unknown.
        """
        dtype, shape = self._type(name)
        if shape != ():
            return self.give(name, f"d({name})")
        self._add(name, self.tape.number(1.0, dtype))
        return None

    def give(self, name: str, called: str) -> str:
        """Start with a value's own gradient as a new input, which is returned.

        Raises:
            GraphError: The value's shape is unknown.
        """
        given = self.tape.define(called, self._type(name))
        self._add(name, given)
        return given

    def run(self) -> None:
        """Write the gradients of all nodes."""
        for node in reversed(self.tape.graph.nodes):
            found = [self._settled(name) for name in node.outputs]
            if not any(found) or self._wanted.isdisjoint(node.reads):
                continue
            if not has_no_slope(node):
                self._differentiate(node, tuple(found))

    def gradient(self, name: str) -> str:
        """Return the final name of a value's gradient; zeros if no path leads to it."""
        found = self._settled(name)
        if found:
            return self.tape.final(found)
        dtype, shape = self._type(name)
        return self.tape.hold(f"d({name})", Fill(np.zeros((), dtype.numpy), shape))

    def _type(self, name: str) -> Type:
        found = self.tape.type(name)
        if found is None:
            raise GraphError(
                f"The gradient of `{name}` needs its shape, which is "
                f"{self.tape.graph.value(name).shape}; give the shapes of the model's inputs."
            )
        return found

    def _differentiate(self, node: Node, gradients: tuple[str, ...]) -> None:
        context = GradientContext(self.tape, node, gradients, self._wanted)
        found = body_of("gradient", node.operator, node.domain)
        if found is not None and node.subgraphs:
            of_graphs: ControlRule = found
            for name, gradient in of_graphs(context, gradient_path):
                self._add(name, gradient)
            return
        rule: Rule | None = found
        if rule is None or node.fused:
            through = next(name for name in node.reads if name in self._wanted)
            raise context.refusal(
                f"has no rule, and the gradient of `{through}` leads through it. Train nothing "
                "that lies before it, write it with operators that have a rule, or make it a "
                "`Layer` with a backward of its own"
            )
        given = set()
        for index, gradient in rule(context):
            self._add(node.inputs[index], gradient)
            given.add(node.inputs[index])
        lost = [name for name in node.reads if name in self._wanted and name not in given]
        if lost:
            raise context.refusal(
                f"is not known for its input `{lost[0]}`: train nothing before that"
            )

    def _settled(self, name: str) -> str:
        """Name the gradient of a value, which is complete, and return it."""
        found = self._gradients.get(name, "") if name else ""
        if found:
            self.tape.call(found, f"d({name})")
        return found

    def _add(self, name: str, gradient: str) -> None:
        before = self._gradients.get(name)
        if before is not None:
            (gradient,) = self.tape.write("Add", (before, gradient), [self._type(name)], {})
        self._gradients[name] = gradient
