"""Graph of a decoder that takes one token of each of several sessions.

It is the graph for as many tokens of one text, in which what depends on the caches or the past
length stands once for each session, as in the graph for one token. The axis along which the shapes
of a value differ between both is that of the tokens.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tightship.engine.state.decoder import Decoder
from tightship.engine.state.pairs import named
from tightship.errors import GraphError
from tightship.graph import Constant, DType, Graph, Inline, Node, Value

PAST_LENGTH = "past_length"
WRITTEN = "capacity."
"""Beginning of the names of values that differ between graphs."""
VERSION = 24


def joint_graph(decoder: Decoder, count: int) -> Graph:
    """Return the graph for one token of each of some sessions.

    Its tokens are `[1, count]`, its logits `[1, count, vocabulary]`; caches and past lengths have
    names by `named`.

    Raises:
        GraphError: The decoder mixes tokens in another way than by its caches.
    """
    one, many = decoder.graph(1, last=False), decoder.graph(count, last=False)
    pairs = [cache.pair for cache in decoder.caches]
    given = {PAST_LENGTH, *(pair.past for pair in pairs)}
    lengths = _TokenAxes(one, many, count)
    own, own_of_many = (_own(graph, given, lengths) for graph in (one, many))
    joining = _Joining(one, many, lengths, own, own_of_many)
    for node in many.nodes:
        joining.take(node)
    sessions = range(count)
    inputs = [name for name in many.inputs if name not in given]
    states = [joining.of_session(name, i) for i in sessions for name in one.inputs if name in given]
    presents = [joining.of_session(pair.present, i) for i in sessions for pair in pairs]
    return replace(
        many,
        inputs=(*inputs, *states),
        outputs=(decoder.logits, *presents),
        values=joining.values,
        nodes=tuple(joining.nodes),
        constants=joining.constants,
    )


@dataclass(frozen=True, slots=True)
class _TokenAxes:
    """Axes of the tokens, from the shapes in both graphs."""

    one: Graph
    many: Graph
    count: int

    def of(self, name: str) -> int | None:
        """Return the axis of a value; None if it has none.

        Raises:
            GraphError: It has tokens along more than one axis.
        """
        single, whole = self.one.value(name).static_shape, self.many.value(name).static_shape
        differ = [n for n, (a, b) in enumerate(zip(single, whole, strict=True)) if a != b]
        if not differ:
            return None
        if len(differ) > 1 or (single[differ[0]], whole[differ[0]]) != (1, self.count):
            raise GraphError(f"`{name}` has tokens along more than one axis.")
        return differ[0]


def _own(graph: Graph, given: Iterable[str], axes: _TokenAxes) -> set[str]:
    """Return the values that each session has one of, of the values given.

    They are of nothing else, or have no axis of tokens: a cache with the rows that all have
    together.
    """
    own = set(given)
    for node in graph.nodes:
        reads = [name in own for name in node.reads if graph.constant(name) is None]
        if any(reads) and (all(reads) or all(axes.of(name) is None for name in node.writes)):
            own.update(node.writes)
    return own


@dataclass(slots=True)
class _Joining:
    """Joint graph under construction.

    Attributes:
        one: Graph for one token.
        many: Graph for as many tokens as there are sessions.
        axes: Axes of the tokens.
        own: Values of the first that each session has one of.
        own_of_many: Such values of the other.
    """

    one: Graph
    many: Graph
    axes: _TokenAxes
    own: set[str]
    own_of_many: set[str]
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(init=False)
    constants: dict[str, Constant] = field(init=False)
    _makers: dict[str, Node] = field(init=False)
    _names: dict[tuple[str, int], str] = field(default_factory=dict)
    _joined: dict[str, str] = field(default_factory=dict)
    _parts: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values, self.constants = dict(self.many.values), dict(self.many.constants)
        self._makers = {name: node for node in self.one.nodes for name in node.writes}

    def take(self, node: Node) -> None:
        """Write a node of the graph for several tokens, unless each session has its own."""
        if any(name in self.own_of_many for name in node.writes):
            return
        if self._reads_a_cache(node, self.own_of_many):
            for output in node.writes:
                self._join(output, output)
            return
        inputs = tuple([self._whole(name) for name in node.inputs])
        self.nodes.append(replace(node, inputs=inputs))

    def of_session(self, name: str, session: int) -> str:
        """Return what a session reads of a value of the graph for one token."""
        if not name:
            return name
        if (constant := self.one.constant(name)) is not None:
            return self._constant(f"{name}.of_one", constant, self.one.value(name))
        maker = self._makers.get(name)
        if name not in self.own and not (maker and self._reads_a_cache(maker, self.own)):
            return self._part(name, session)
        key = name, session
        if key not in self._names:
            self._names[key] = named(name, session)
            self.values[named(name, session)] = replace(
                self.one.value(name), name=named(name, session)
            )
            if maker is not None:
                self._write(maker, session)
        return self._names[key]

    def _reads_a_cache(self, node: Node, own: set[str]) -> bool:
        """Whether a node reads what each session has one of, and cannot be joined."""
        return any(
            name in own and not name.startswith(WRITTEN) and self.axes.of(name) is None
            for name in node.reads
        )

    def _write(self, node: Node, session: int) -> None:
        """Write a node of the graph for one token for a session."""
        if node.subgraphs or node.fused or len(node.writes) != 1:
            raise GraphError(f"Node `{node.name}` ({node.operator}) cannot be one of each session.")
        inputs = tuple([self.of_session(name, session) for name in node.inputs])
        outputs = tuple([name and named(name, session) for name in node.outputs])
        self.nodes.append(
            replace(node, name=named(node.name, session), inputs=inputs, outputs=outputs)
        )

    def _part(self, name: str, session: int) -> str:
        """Return a session's part of a value that all sessions have together."""
        axis = self.axes.of(name)
        if axis is None:
            return name
        if name not in self._parts:
            self._parts[name] = [f"{name}.part{i}" for i in range(self.axes.count)]
            for part in self._parts[name]:
                self.values[part] = replace(self.one.value(name), name=part)
            sizes: NDArray[np.int64] = np.ones(self.axes.count, np.int64)
            given = Value(f"{name}.parts", DType.INT64, sizes.shape)
            inputs = name, self._constant(given.name, Inline(sizes), given)
            attributes = {"axis": axis}
            self.nodes.append(
                Node(f"{name}/Split", "Split", inputs, tuple(self._parts[name]), attributes,
                     version=VERSION)
            )  # fmt: skip
        return self._parts[name][session]

    def _whole(self, name: str) -> str:
        """Return what a node for all sessions reads of a value."""
        if name not in self.own_of_many or self.many.constant(name) is not None:
            return name
        if name not in self._joined:
            self._joined[name] = f"{name}.joint"
            self._join(name, self._joined[name])
        return self._joined[name]

    def _join(self, name: str, joint: str) -> None:
        """Put the values of all sessions one behind the other, along the axis of the tokens."""
        axis = None if name.startswith(WRITTEN) else self.axes.of(name)
        if axis is None:
            raise GraphError(
                f"`{name}` is of each session, and has no axis of tokens along which they join."
            )
        parts = tuple([self.of_session(name, i) for i in range(self.axes.count)])
        self.values[joint] = replace(self.many.value(name), name=joint)
        self.nodes.append(
            Node(f"{joint}/Concat", "Concat", parts, (joint,), {"axis": axis}, version=VERSION)
        )

    def _constant(self, name: str, constant: Constant, value: Value) -> str:
        if name not in self.constants:
            self.constants[name] = constant
            self.values[name] = replace(value, name=name)
        return name
