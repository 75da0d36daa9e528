"""Expands control flow that is known before the run: branches, and iterations of short loops.

Nodes of bodies become nodes of the graph: they run on its kernels, their values have a place in the
arena, and dropouts and batch normalizations among them are those of training. Control flow that
cannot be expanded stays; the outermost graph then holds its weights.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tightship.engine.kernels import evaluate
from tightship.graph import Constant, DType, Graph, Inline, Node, Value, element_count
from tightship.graph.backward.gradient_context import FLOATS
from tightship.graph.backward.loop_iterations import (
    UNBATCHED_SCAN_VERSION,
    LoopIterations,
    ScanAxis,
    iterations_of,
)
from tightship.graph.backward.reach import changing_with
from tightship.graph.new_names import NewNames, renamed, renamed_node

NODES_MAX = 1024
"""Most nodes that a loop may be expanded to; a longer one stays a loop. Each node is a step of its
own, with about 40 KB of runtime memory for its primitives, forward and backward."""
LOOKED_INTO_MAX = 64
"""Most elements of integer values, such as positions, that are computed during the expansion."""
_OPSET = 18


def written_out(graph: Graph) -> Graph:
    """Expand every If with a known condition into its branch, and short loops into iterations.

    A loop is short if its iterations are counted before the run and become at most `NODES_MAX`
    nodes. Values that depend on elements of a float constant count as unknown, because the constant
    may be trained. Such constants of other bodies become constants of the graph.
    """
    if not any(node.subgraphs for node in graph.nodes):
        return graph
    model = _Model(NewNames(graph), _definitions(graph))
    return _Writing(graph, model, changing_with(graph, _floats(graph))).written()


def _floats(graph: Graph) -> set[str]:
    return {name for name, constant in graph.constants.items() if constant.dtype in FLOATS}


def _definitions(graph: Graph) -> Counter[str]:
    """Count how many graphs, of this one and those of its nodes, define each name."""
    found = Counter({*graph.inputs, *graph.constants, *(n for x in graph.nodes for n in x.writes)})
    for node in graph.nodes:
        for body in node.subgraphs:
            found.update(_definitions(body))
    return found


def _size(graph: Graph) -> int:
    """Count nodes of a graph, and of the graphs of its nodes."""
    return sum(1 + sum(map(_size, node.subgraphs)) for node in graph.nodes)


@dataclass(slots=True)
class _Model:
    """State that all graphs of a model share during the expansion.

    Attributes:
        names: Source of new names.
        definitions: Number of graphs that define each name.
        lifted: Constants of bodies by identity, with their names in the outermost graph.
    """

    names: NewNames
    definitions: Counter[str]
    lifted: dict[int, tuple[Constant, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _Writing:
    """A graph during its expansion.

    Attributes:
        source: The original graph.
        model: State of the whole model.
        changing: Values that depend on trainable constants.
        around: The enclosing graph.
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
        """Return the graph with its nodes expanded where possible."""
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
        """Add a node that uses the graph's names, or its expansion."""
        if node.domain or not node.subgraphs:
            self._emit(node)
        elif node.operator == "If" and (condition := self._constant(node.inputs[0])) is not None:
            branch = node.attributes["then_branch" if condition.array().all() else "else_branch"]
            assert isinstance(branch, Graph), node.name
            self._named(self._inlined(branch, (), node.name), node.outputs)
        elif (iterations := self._iterations(node)) is not None:
            self._take(iterations)
        else:
            self._keep(node)

    def _emit(self, node: Node) -> None:
        self.nodes.append(node)
        if not self.changing.isdisjoint(node.reads):
            self.changing.update(node.writes)
        elif found := self._computed(node):
            self.known.update(found)

    def _computed(self, node: Node) -> Mapping[str, Constant]:
        """Compute small integer results of a node from known values."""
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
        """Return the known value of a name, if it has few elements and cannot be trained."""
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
        """Keep a node with its bodies, in which known control flow is expanded."""
        attributes = {**node.attributes}
        for name, body in node.attributes.items():
            if isinstance(body, Graph):
                lifted = {n: self._lifted(c, n) for n, c in body.constants.items() if _is_float(c)}
                inner = renamed(body, lifted)
                changing = changing_with(inner, self.changing.intersection(inner.captures))
                attributes[name] = _Writing(inner, self.model, changing, self).written()
        self._emit(replace(node, attributes=attributes))

    def _lifted(self, constant: Constant, name: str) -> str:
        """Return the name of a body's constant in this graph; the outermost graph holds it."""
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
        """Add the nodes of a body for given inputs; return the names of its results."""
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

    def _iterations(self, node: Node) -> LoopIterations | None:
        """Return the iterations of a loop that is to be expanded, otherwise None."""
        is_batched = node.operator == "Scan" and node.version < UNBATCHED_SCAN_VERSION
        if node.operator not in ("Loop", "Scan") or is_batched:
            return None
        iterations = iterations_of(node, self._value, self._constant)
        wholes = [
            self._value(scan_axis.outer) for scan_axis in iterations.slices if scan_axis.outer
        ]
        wholes += [
            self._value(scan_axis.outer) for scan_axis in iterations.elements if scan_axis.outer
        ]
        if not iterations.count or not all(whole.is_static for whole in wholes):
            return None
        return iterations if iterations.count * _size(iterations.body) <= NODES_MAX else None

    def _take(self, iterations: LoopIterations) -> None:
        """Add the nodes of every iteration."""
        assert iterations.count is not None
        outputs, count = iterations.node.outputs, len(iterations.starts)
        states = list(iterations.starts)
        columns: list[list[str]] = [[] for _ in iterations.elements]
        slices = [self._slices(scan_axis, iterations) for scan_axis in iterations.slices]
        for iteration, given in enumerate(zip(*slices, strict=True)):
            stem = f"{iterations.node.name}.{iteration}"
            results = self._inlined(iterations.body, (*states, *given), stem)
            states = results[:count]
            for column, result in zip(columns, results[count:], strict=True):
                column.append(result)
        self._named(states, outputs)
        for scan_axis, column in zip(iterations.elements, columns, strict=True):
            if scan_axis.outer:
                self._stack(scan_axis, column)

    def _slices(self, scan_axis: ScanAxis, iterations: LoopIterations) -> list[str]:
        """Return the slice of a value that each iteration takes, in order."""
        assert iterations.count is not None
        stem, turned = iterations.node.name, range(iterations.count)
        if not scan_axis.outer:
            return [self._held(f"{stem}.turn", Inline(np.array(iteration))) for iteration in turned]
        whole = self._value(scan_axis.outer)
        shape = list(whole.static_shape)
        axis = scan_axis.axis % len(shape)
        del shape[axis]
        ones = self._integers([1] * iterations.count)
        parts = [
            self._value_of(scan_axis.inner, whole, (*shape[:axis], 1, *shape[axis:]))
            for _ in turned
        ]
        self._emit(Node(parts[0], "Split", (scan_axis.outer, ones), tuple(parts), {"axis": axis},
                        version=_OPSET))  # fmt: skip
        slices = [self._reshaped(part, scan_axis.inner, shape) for part in parts]
        return slices[::-1] if scan_axis.is_backward else slices

    def _stack(self, scan_axis: ScanAxis, column: list[str]) -> None:
        """Join the iterations' elements into one value."""
        shape = list(self._value(scan_axis.outer).static_shape)
        axis = scan_axis.axis % len(shape)
        shape[axis] = 1
        parts = [self._reshaped(name, scan_axis.inner, shape) for name in column]
        parts = parts[::-1] if scan_axis.is_backward else parts
        self._emit(Node(scan_axis.outer, "Concat", tuple(parts), (scan_axis.outer,), {"axis": axis},
                        version=_OPSET))  # fmt: skip

    def _reshaped(self, name: str, stem: str, shape: Sequence[int]) -> str:
        made = self._value_of(stem, self._value(name), shape)
        sizes = self._integers(shape)
        self._emit(Node(made, "Reshape", (name, sizes), (made,), {"allowzero": 1}, version=_OPSET))
        return made

    def _value_of(self, stem: str, like: Value, shape: Sequence[int]) -> str:
        """Make a new value with the element type of another."""
        name = self.model.names.new(stem)
        self.values[name] = Value(name, like.dtype, tuple(shape))
        return name

    def _integers(self, numbers: Sequence[int]) -> str:
        return self._held("integers", Inline(np.array(numbers, np.int64)))


def _is_float(constant: Constant) -> bool:
    return constant.dtype in FLOATS


def _is_small(value: Value) -> bool:
    """Whether a value is known to have few elements of integers or truth values."""
    is_exact = value.dtype in (DType.INT64, DType.INT32, DType.BOOL)
    return is_exact and value.is_static and element_count(value.static_shape) <= LOOKED_INTO_MAX
