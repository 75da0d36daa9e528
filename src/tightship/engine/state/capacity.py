"""Rewrites a decoder's graph: caches get a fixed number of rows, and the past length is data.

The file's graph has shapes that grow with the past: caches of P rows enter, the new S rows are
concatenated, and masks and positions follow from lengths. The rewritten graph has caches of C rows,
an input with P, and no shape that depends on it. An axis of P or P + S rows is *extended* to C;
rules by operator (`rules`) see to it that the rows beyond have no influence on the others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.engine.state.follow import FollowedGraph, Linear, OddLengthError
from tightship.engine.state.following_input import FollowingInput
from tightship.engine.state.writer import Axes, Extent, Writer
from tightship.errors import GraphError
from tightship.graph import DType, Graph, Node, Value
from tightship.graph.new_names import NewNames

PAST_LENGTH = "past_length"
"""Input of a rewritten graph: rows of the caches that are in use, int64 of one element."""


@dataclass(slots=True)
class Rewriter:
    """Walk over the nodes of a followed graph.

    Attributes:
        followed: The file's graph.
        writer: The graph under construction.
        axes: Extended axes by value.
        data: Small constants that contain the past length, written once a node reads elements.
        changing: Values without extended axes whose elements depend on the past length.
        indices: Values of `changing` whose elements are positions, none negative.
        counts: Values of `changing` whose elements are the past length plus this number.
        masks: Masks `[batch, rows]` of ones for the past rows and this number of new ones.
        joined: Masks whose texts are joined to one axis; they are not written.
        gathered: Ones that were gathered from these.
    """

    followed: FollowedGraph
    writer: Writer
    axes: dict[str, Axes] = field(default_factory=dict)
    data: set[str] = field(default_factory=set)
    changing: set[str] = field(default_factory=set)
    indices: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    masks: dict[str, int] = field(default_factory=dict)
    joined: set[str] = field(default_factory=set)
    gathered: set[str] = field(default_factory=set)

    def is_touched(self, name: str) -> bool:
        """Whether a value depends on the past length."""
        return any(name in each for each in (self.axes, self.data, self.changing, self.joined))

    def axes_of(self, name: str) -> Axes:
        """Return the extended axes of a value."""
        return self.axes.get(name, {})

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value of the file in the rewritten graph."""
        return tuple(self.length(name, length) for length in self.followed.shape(name))

    def shape_of(self, name: str) -> tuple[int, ...]:
        """Return the shape of a value of either graph in the rewritten graph."""
        if name in self.data:
            return self.shape(name)
        return self.writer.values[name].static_shape

    def length(self, name: str, length: Linear) -> int:
        """Return a length in the rewritten graph.

        Raises:
            OddLengthError: It grows with the past in another way than a cache's rows.
        """
        factor, rest = length
        if not factor:
            return rest
        if factor != 1 or not 0 <= rest <= self.followed.steps:
            raise OddLengthError(f"an axis of {factor} * past + {rest} rows in `{name}`")
        return self.followed.capacity

    def added(self, name: str) -> dict[int, int]:
        """Return the axes of a value that grow, each with the rows that follow the past."""
        self.shape(name)
        return {
            axis: rest for axis, (factor, rest) in enumerate(self.followed.shape(name)) if factor
        }

    def has_positions(self, name: str) -> bool:
        """Whether no element of a value is negative, as far as that is known."""
        if name in self.indices:
            return True
        if self.is_touched(name):
            return False
        known = self.followed.graph.constant(name)
        if known is None or known.dtype not in (DType.INT64, DType.INT32):
            return False
        return int(np.asarray(known.array(), np.int64).min(initial=0)) >= 0

    def operand(self, name: str) -> str:
        """Return a value's name, after writing the elements of a small constant."""
        if name in self.data:
            self._write(name)
        return name

    def elements(self, node: Node, index: int) -> tuple[Linear, ...] | None:
        """Return the integers of an input; None if it is left out.

        Raises:
            GraphError: They are unknown.
        """
        if index >= len(node.inputs) or not node.inputs[index]:
            return None
        found = self.followed.elements(node.inputs[index])
        if found is None:
            raise self.refusal(node, f"the input `{node.inputs[index]}` of unknown elements")
        return found

    def define(self, name: str, axes: Axes) -> None:
        """Record the extended axes of a value that has been written."""
        if axes:
            self.axes[name] = axes
        else:
            self.changing.add(name)

    def keep(self, node: Node, inputs: Sequence[str] | None = None) -> None:
        """Write a node of the file, over these inputs if they are others."""
        given = tuple(node.inputs if inputs is None else inputs)
        self.writer.nodes.append(replace(node, inputs=tuple(n and self.operand(n) for n in given)))
        for name in node.writes:
            self.writer.values[name] = replace(
                self.followed.graph.value(name), shape=self.shape(name)
            )

    def refusal(self, node: Node, what: str) -> GraphError:
        """Return the error for a node that cannot be rewritten."""
        return GraphError(
            f"Node `{node.name}` ({node.operator}) has {what}, so that the model cannot be planned "
            "for a whole context."
        )

    def _write(self, name: str) -> None:
        """Write a small constant that contains the past length: `past * a + b`."""
        self.data.discard(name)
        dtype, shape = self.followed.known[name].dtype, self.followed.known[name].shape
        pairs = self.followed.elements(name)
        assert pairs is not None
        factors, rests = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
        writer, size = self.writer, (len(pairs),)
        found = writer.past
        if any(factors != 1):
            found = writer.node("Mul", (found, writer.constant(factors)), DType.INT64, size)
        found = writer.node("Add", (found, writer.constant(rests)), DType.INT64, size)
        if dtype is not DType.INT64:
            number = 6 if dtype is DType.INT32 else 9
            found = writer.node("Cast", (found,), dtype, size, to=number)
        writer.node("Reshape", (found, writer.constant(shape)), dtype, shape, name)
        self.changing.add(name)
        if min(factors, default=0) >= 0 and min(rests, default=0) >= 0:
            self.indices.add(name)


def with_capacity(
    followed: FollowedGraph,
    caches: Mapping[str, Extent | None],
    following: Mapping[str, FollowingInput],
) -> Graph:
    """Return the graph with caches of `followed.capacity` rows.

    Args:
        followed: The file's graph.
        caches: Extent of the rows by cache input; None for caches that have the capacity already.
        following: Inputs that follow from the past length.

    Raises:
        GraphError: An operator has no rule for rows that are not in use.
    """
    from tightship.engine.state.generation import write_following
    from tightship.engine.state.rules import visit

    graph = followed.graph
    names = NewNames(graph)
    writer = Writer(names, followed.capacity, names.new(PAST_LENGTH))
    writer.values[writer.past] = Value(writer.past, DType.INT64, (1,))
    writer.values.update(graph.values)
    writer.constants.update(graph.constants)
    rewriter = Rewriter(followed, writer)
    for name, extent in caches.items():
        writer.values[name] = replace(graph.value(name), shape=rewriter.shape(name))
        if extent is not None:
            rewriter.axes[name] = {
                axis: Extent(added, extent.beyond) for axis, added in rewriter.added(name).items()
            }
    for name, each in following.items():
        write_following(rewriter, name, each)
    for node in graph.nodes:
        try:
            visit(rewriter, node)
        except OddLengthError as error:
            raise rewriter.refusal(node, str(error)) from None
    kept = tuple(name for name in graph.inputs if name not in following)
    outputs = tuple(map(rewriter.operand, graph.outputs))
    defined = {name for node in writer.nodes for name in node.writes}
    known = {n: c for n, c in graph.known.items() if n in defined and not rewriter.is_touched(n)}
    return Graph(
        graph.name, (*kept, writer.past), outputs, writer.values, tuple(writer.nodes),
        writer.constants, known, graph.captures, graph.layers,
    )  # fmt: skip
