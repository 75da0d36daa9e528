"""Control flow that is known before the run, written out: branches, and turns in a row.

Nodes of bodies become nodes of the graph: they run on its kernels, their values have a place in the
arena, and dropouts and batch normalizations among them are those of training. What cannot be
written out stays, its weights held by the outermost graph.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.engine.kernels import evaluate
from tightship.graph import Constant, DType, Graph, Inline, Node, Value, element_count
from tightship.graph.backward.reach import changing_with
from tightship.graph.backward.site import FLOATS
from tightship.graph.backward.turns import UNBATCHED_SCAN_VERSION, Lane, Turns, turns_of
from tightship.graph.new_names import NewNames
from tightship.graph.renamed import renamed, renamed_node

NODES_MAX = 1024
"""Nodes that the turns of a loop may become; a longer one stays a loop. Each is a step of its own,
with some 40 KB of runtime for its primitives, forward and backward."""
LOOKED_INTO_MAX = 64
"""Elements of integers that are computed while turns are written out, as positions are."""
_OPSET = 18


def written_out(graph: Graph) -> Graph:
    """The graph with every If whose condition is known as its branch, and short loops as turns.

    A loop is one of these if its turns are counted before the run, and become at most `NODES_MAX`
    nodes. What depends on elements of a constant of floats is not taken for known, for it may be
    trained. Such constants of other bodies become constants of the graph.
    """
    if not any(node.subgraphs for node in graph.nodes):
        return graph
    model = _Model(NewNames(graph), _definitions(graph))
    return _Writing(graph, model, changing_with(graph, _floats(graph))).written()


def _floats(graph: Graph) -> set[str]:
    return {name for name, constant in graph.constants.items() if constant.dtype in FLOATS}


def _definitions(graph: Graph) -> Counter[str]:
    """How many graphs, of this one and those of its nodes, define each name."""
    found = Counter({*graph.inputs, *graph.constants, *(n for x in graph.nodes for n in x.writes)})
    for node in graph.nodes:
        for body in node.subgraphs:
            found.update(_definitions(body))
    return found


def _size(graph: Graph) -> int:
    """Nodes of a graph, and of those of its nodes."""
    return sum(1 + sum(map(_size, node.subgraphs)) for node in graph.nodes)


@dataclass(slots=True)
class _Model:
    """What all graphs of a model have in common while they are written.

    Attributes:
        names: Of what is added.
        definitions: How many graphs define each.
        lifted: Constants of bodies, by identity, and what they are called in the outermost graph.
    """

    names: NewNames
    definitions: Counter[str]
    lifted: dict[int, tuple[Constant, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Writing:
    """A graph being written.

    Attributes:
        source: What it is made of.
        model: What it is a part of.
        changing: Values that depend on what may be trained.
        around: The graph around it.
    """

    source: Graph
    model: _Model
    changing: set[str]
    around: "_Writing | None" = None
    nodes: list[Node] = field(default_factory=list)
    values: dict[str, Value] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    known: dict[str, Constant] = field(default_factory=dict)
    captured: dict[str, None] = field(default_factory=dict)

    def written(self) -> Graph:
        """The graph, with what can be written out of its nodes."""
        source = self.source
        self.values.update(source.values)
        self.constants.update(source.constants)
        self.known.update(source.known)
        self.captured.update(dict.fromkeys(source.captures))
        for node in source.nodes:
            self._add(node)
        return replace(
            source,
            nodes=tuple(self.nodes),
            values=self.values,
            constants=self.constants,
            known=self.known,
            captures=tuple(self.captured),
        )

    def _add(self, node: Node) -> None:
        """A node of the graph's own names; in its place what it does, if that is known."""
        if node.domain or not node.subgraphs:
            self._emit(node)
        elif node.operator == "If" and (condition := self._constant(node.inputs[0])) is not None:
            branch = node.attributes["then_branch" if condition.array().all() else "else_branch"]
            assert isinstance(branch, Graph), node.name
            self._named(self._inlined(branch, (), node.name), node.outputs)
        elif (turns := self._turns(node)) is not None:
            self._take(turns)
        else:
            self._keep(node)

    def _emit(self, node: Node) -> None:
        self.nodes.append(node)
        if not self.changing.isdisjoint(node.reads):
            self.changing.update(node.writes)
        elif found := self._computed(node):
            self.known.update(found)

    def _computed(self, node: Node) -> Mapping[str, Constant]:
        """Few integers that follow from what is known."""
        outputs = [self._value(name) for name in node.outputs]
        if node.domain or not node.inputs or not all(map(_is_small, outputs)):
            return {}
        operands = [self._constant(name) if name else None for name in node.inputs]
        if any(name and not found for name, found in zip(node.inputs, operands, strict=True)):
            return {}
        arrays = [None if found is None else found.array() for found in operands]
        results = evaluate(node, arrays, outputs)
        return {
            name: Inline(np.asarray(result))
            for name, result in zip(node.outputs, results, strict=True)
        }

    def _constant(self, name: str) -> Constant | None:
        """What a value is known to be, if it has few elements and cannot be trained."""
        if name in self.changing:
            return None
        found = self.constants.get(name) or self.known.get(name)
        if found is None and self.around is not None and name in self.captured:
            return self.around._constant(name)
        if found is None or element_count(found.shape) > LOOKED_INTO_MAX:
            return None
        return found

    def _value(self, name: str) -> Value:
        return self.values.get(name) or Value(name)

    def _keep(self, node: Node) -> None:
        """A node whose graphs run as they are, but for what is known within them."""
        attributes = {**node.attributes}
        for name, body in node.attributes.items():
            if isinstance(body, Graph):
                lifted = {n: self._lifted(c, n) for n, c in body.constants.items() if _is_float(c)}
                inner = renamed(body, lifted)
                changing = changing_with(inner, self.changing.intersection(inner.captures))
                attributes[name] = _Writing(inner, self.model, changing, self).written()
        self._emit(replace(node, attributes=attributes))

    def _lifted(self, constant: Constant, name: str) -> str:
        """What a constant of a body is called in this graph: the outermost one has it."""
        value = Value(name, constant.dtype, constant.shape)
        if self.around is not None:
            called = self.around._lifted(constant, name)
            self.captured[called] = None
        elif id(constant) in self.model.lifted:
            _, called = self.model.lifted[id(constant)]
        else:
            is_own = self.model.definitions[name] == 1
            called = name if is_own else self.model.names.new(name)
            self.model.lifted[id(constant)] = constant, called
            self.constants[called] = constant
        self.values[called] = replace(value, name=called)
        self.changing.add(called)
        return called

    def _inlined(self, body: Graph, given: Sequence[str], stem: str) -> list[str]:
        """Add the nodes of a body, for what it is given; return its results."""
        names = dict(zip(body.inputs, given, strict=True))
        for name, constant in body.constants.items():
            if _is_float(constant):
                names[name] = self._lifted(constant, name)
            elif name not in names:
                names[name] = self._held(f"{stem}.{name}", constant)
        for node in body.nodes:
            for name in node.writes:
                called = names[name] = self.model.names.new(f"{stem}.{name}")
                self.values[called] = replace(body.value(name), name=called)
            self._add(replace(renamed_node(node, names), name=names[node.writes[0]]))
        return [names.get(name, name) for name in body.outputs]

    def _held(self, wanted: str, constant: Constant) -> str:
        name = self.model.names.new(wanted)
        self.constants[name] = constant
        self.values[name] = Value(name, constant.dtype, constant.shape)
        return name

    def _named(self, results: Sequence[str], outputs: Sequence[str]) -> None:
        for result, name in zip(results, outputs, strict=False):
            if name:
                self._emit(Node(name, "Identity", (result,), (name,), version=_OPSET))

    def _turns(self, node: Node) -> Turns | None:
        """The turns of a loop that is to be written out."""
        is_batched = node.operator == "Scan" and node.version < UNBATCHED_SCAN_VERSION
        if node.operator not in ("Loop", "Scan") or is_batched:
            return None
        turns = turns_of(node, self._value, self._constant)
        wholes = [self._value(lane.outer) for lane in turns.slices if lane.outer]
        wholes += [self._value(lane.outer) for lane in turns.elements if lane.outer]
        if not turns.count or not all(whole.is_static for whole in wholes):
            return None
        return turns if turns.count * _size(turns.body) <= NODES_MAX else None

    def _take(self, turns: Turns) -> None:
        """Turn after turn."""
        assert turns.count is not None
        outputs, count = turns.node.outputs, len(turns.starts)
        states = list(turns.starts)
        columns: list[list[str]] = [[] for _ in turns.elements]
        slices = [self._slices(lane, turns) for lane in turns.slices]
        for turn, given in enumerate(zip(*slices, strict=True)):
            stem = f"{turns.node.name}.{turn}"
            results = self._inlined(turns.body, (*states, *given), stem)
            states = results[:count]
            for column, result in zip(columns, results[count:], strict=True):
                column.append(result)
        self._named(states, outputs)
        for lane, column in zip(turns.elements, columns, strict=True):
            if lane.outer:
                self._stack(lane, column)

    def _slices(self, lane: Lane, turns: Turns) -> list[str]:
        """What each turn takes of a value, in the order of turns."""
        assert turns.count is not None
        stem, turned = turns.node.name, range(turns.count)
        if not lane.outer:
            return [self._held(f"{stem}.turn", Inline(np.array(turn))) for turn in turned]
        whole = self._value(lane.outer)
        shape = list(whole.static_shape)
        axis = lane.axis % len(shape)
        del shape[axis]
        ones = self._integers([1] * turns.count)
        parts = [
            self._value_of(lane.inner, whole, (*shape[:axis], 1, *shape[axis:])) for _ in turned
        ]
        self._emit(Node(parts[0], "Split", (lane.outer, ones), tuple(parts), {"axis": axis},
                        version=_OPSET))  # fmt: skip
        slices = [self._reshaped(part, lane.inner, shape) for part in parts]
        return slices[::-1] if lane.is_backward else slices

    def _stack(self, lane: Lane, column: list[str]) -> None:
        """Elements of the turns, as one value."""
        shape = list(self._value(lane.outer).static_shape)
        axis = lane.axis % len(shape)
        shape[axis] = 1
        parts = [self._reshaped(name, lane.inner, shape) for name in column]
        parts = parts[::-1] if lane.is_backward else parts
        self._emit(Node(lane.outer, "Concat", tuple(parts), (lane.outer,), {"axis": axis},
                        version=_OPSET))  # fmt: skip

    def _reshaped(self, name: str, stem: str, shape: Sequence[int]) -> str:
        made = self._value_of(stem, self._value(name), shape)
        sizes = self._integers(shape)
        self._emit(Node(made, "Reshape", (name, sizes), (made,), {"allowzero": 1}, version=_OPSET))
        return made

    def _value_of(self, stem: str, like: Value, shape: Sequence[int]) -> str:
        """A new value with the element type of another."""
        name = self.model.names.new(stem)
        self.values[name] = Value(name, like.dtype, tuple(shape))
        return name

    def _integers(self, numbers: Sequence[int]) -> str:
        return self._held("integers", Inline(np.array(numbers, np.int64)))


def _is_float(constant: Constant) -> bool:
    return constant.dtype in FLOATS


def _is_small(value: Value) -> bool:
    """Whether it is of few integers, or truths."""
    is_exact = value.dtype in (DType.INT64, DType.INT32, DType.BOOL)
    return is_exact and value.is_static and element_count(value.static_shape) <= LOOKED_INTO_MAX
