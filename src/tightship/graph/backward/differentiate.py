"""The backward walk: from outputs to whatever gradients are wanted of."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tightship.errors import GraphError
from tightship.graph.backward.batch_statistics import with_batch_statistics
from tightship.graph.backward.control import CONTROL
from tightship.graph.backward.gradient_context import FLOATS, Ends, GradientContext
from tightship.graph.backward.operators import Type
from tightship.graph.backward.reach import changing_with, leading_through
from tightship.graph.backward.rules import FLAT, RULES
from tightship.graph.backward.tape import Tape
from tightship.graph.constant import Constant, Fill
from tightship.graph.ir import Graph, Node, leading_to

_HIDING = -1e4
"""What masks add to scores that must not count: this, or less."""
_LAYERS = frozenset(
    {"BatchNormalization", "BatchNormalizationTraining", "Conv", "ConvTranspose", "Gemm",
     "GroupNormalization", "InstanceNormalization", "LayerNormalization", "PRelu"}
)  # fmt: skip
"""Operators whose constants are weights, be they single numbers."""
_SET_UP = {"BatchNormalization": 3, "OneHot": 1, "Resize": 1, "Upsample": 1}
"""How many inputs of an operator can be weights; the others say what it does."""


def parameters(graph: Graph) -> tuple[str, ...]:
    """Constants that a model is trained by: floats that a node reads.

    What is added to scores to hide some of them is none, nor is a number by itself, unless it is a
    weight of a layer of one channel.
    """
    return tuple(
        name
        for name, operators in _readers(graph).items()
        if (operators <= _LAYERS or any(length != 1 for length in graph.constants[name].shape))
        and not (operators == {"Add"} and _hides(graph.constants[name]))
    )


def constants_read(graph: Graph) -> tuple[str, ...]:
    """Constants of floats that a node reads: those that a model can be trained by."""
    return tuple(_readers(graph))


def _readers(graph: Graph) -> dict[str, set[str]]:
    """Operators that read each constant of floats, as more than a setting."""
    readers: dict[str, set[str]] = {}
    for name, operator in _readings(graph):
        if name in graph.constants and graph.constants[name].dtype in FLOATS:
            readers.setdefault(name, set()).add(operator)
    return readers


def _readings(graph: Graph) -> Iterator[tuple[str, str]]:
    """Names that nodes read as more than settings, in bodies too, and the nodes' operators."""
    for node in graph.nodes:
        inner = {name for body in node.subgraphs for name in body.captures}
        count = _SET_UP.get(node.operator)
        for name in node.inputs[:count] if count else node.reads:
            if name not in inner or name in node.inputs:
                yield name, node.operator
        for body in node.subgraphs:
            yield from ((name, each) for name, each in _readings(body) if name in body.captures)


def _hides(constant: Constant) -> bool:
    """Whether a constant is a mask; vectors are biases, and not looked at."""
    return len(constant.shape) > 1 and bool((constant.array().astype(np.float32) <= _HIDING).any())


def backward(
    graph: Graph, of: Iterable[str] | None = None, wrt: Iterable[str] | None = None
) -> Graph:
    """The graph with the explicit backward path of some of its values.

    The forward nodes stay first, in their order. Behind them follow the nodes of the gradients,
    last forward node first; where a value is read more than once, an Add joins its gradients as
    soon as there are two. A gradient node reads the forward values that its rule names and no
    others, so that what nobody reads is free after its last forward use. The gradient of `x` is
    called `d(x)`, unless it is the gradient of another value unchanged.

    Args:
        graph: A graph; values on the way have static shapes.
        of: What to differentiate: float values of the graph. The gradient of a scalar starts
            with 1, that of any other value `y` is a new input `d(y)`. None stands for all
            float outputs.
        wrt: Values whose gradients are wanted, inputs and constants among them. None stands for
            `parameters`.

    Returns:
        The graph, its outputs followed by the gradients in the order of `wrt`. A gradient that
        nothing leads to is a constant of zeros. What the graph knew of values that depend on
        elements of `wrt` is left out: these may change between runs.

    Raises:
        GraphError: A name is no float value of the graph, or the gradient of a node on the way
            is not known.

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
    """A graph of the gradients of some of a graph's values, from given ones of others.

    It has no other outputs, and of the forward nodes those alone that a gradient reads.

    Args:
        graph: A graph; it may be the body of a node.
        ends: Floats, each with a name for its gradient: inputs behind those of the graph, where
            the name is not taken.
        wrt: What gradients are wanted of, captures among them: the outputs.

    Raises:
        GraphError: As `backward`.
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
    """The graph, which knows nothing that depends on a target's elements, nor do its bodies."""
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
    """Gradients as far as they are known, going through the nodes from the last to the first."""

    def __init__(self, graph: Graph, wanted: set[str]) -> None:
        self.tape = Tape(graph)
        self._wanted = wanted
        self._gradients: dict[str, str] = {}

    def start(self, name: str) -> str | None:
        """Let a value's own gradient be 1, or a new input, which is returned.

        Raises:
            GraphError: The value's shape is not known.
        """
        dtype, shape = self._type(name)
        if shape != ():
            return self.give(name, f"d({name})")
        self._add(name, self.tape.number(1.0, dtype))
        return None

    def give(self, name: str, called: str) -> str:
        """Let a value's own gradient be a new input, which is returned.

        Raises:
            GraphError: The value's shape is not known.
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
            if node.domain or node.operator not in FLAT:
                self._differentiate(node, tuple(found))

    def gradient(self, name: str) -> str:
        """The final name of a value's gradient; zeros where nothing leads to it."""
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
        of_graphs = CONTROL.get((node.domain, node.operator))
        if of_graphs is not None:
            for name, gradient in of_graphs(context, gradient_path):
                self._add(name, gradient)
            return
        rule = RULES.get((node.domain, node.operator))
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
        """The gradient of a value that has all of its parts, under its final name."""
        found = self._gradients.get(name, "") if name else ""
        if found:
            self.tape.call(found, f"d({name})")
        return found

    def _add(self, name: str, gradient: str) -> None:
        before = self._gradients.get(name)
        if before is not None:
            (gradient,) = self.tape.write("Add", (before, gradient), [self._type(name)], {})
        self._gradients[name] = gradient
