"""Equal layers of a decoder, of which one is read and the others are copies of it by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tightship.frontend.gguf.parameters import Parameters
from tightship.frontend.gguf.weights import Weights
from tightship.graph import AttributeValue, Constant, Graph, Node, Value

Given = TypeVar("Given")

KINDS = ("blk.{}.", "past_key_values.{}.", "present.{}.")
"""Beginnings of the names of a layer: its tensors and nodes, and its caches."""


def stand_ins(weights: Weights, parameters: Parameters) -> tuple[int, ...]:
    """Return for each layer the first that differs from it in nothing but the bytes of tensors.

    Types and shapes of the tensors, and the window, tell all that is written of a layer.
    """
    tensors: dict[str, list[tuple[object, ...]]] = {}
    for name, placed in weights.contents.tensors.items():
        kind, _, rest = name.partition(".")
        layer, _, part = rest.partition(".")
        if kind == "blk":
            tensors.setdefault(layer, []).append(
                (part, placed.tensor.type.name, placed.tensor.shape)
            )
    first: dict[tuple[object, ...], int] = {}
    return tuple(
        first.setdefault(
            (parameters.windows.of(index), *sorted(tensors.get(str(index), ()), key=str)), index
        )
        for index in range(parameters.layers)
    )


def with_records_once(graph: Graph) -> Graph:
    """Return a graph in which equal nodes of layers have one record of attributes.

    A plan counts such nodes once, whether each layer was read or one of them.
    """
    records: dict[tuple[str, str], Mapping[str, AttributeValue]] = {}
    nodes = []
    for node in graph.nodes:
        kind, _, rest = node.name.partition(".")
        place = rest.partition(".")[2] if f"{kind}.{{}}." in KINDS else node.name
        found = records.setdefault((place, node.operator), node.attributes)
        is_equal = found is not node.attributes and found == node.attributes
        nodes.append(replace(node, attributes=found) if is_equal else node)
    return replace(graph, nodes=tuple(nodes))


@dataclass(frozen=True, slots=True)
class EqualLayers:
    """Layers of a graph that has each kind of them once.

    Attributes:
        stands: For each layer of the model, the one in the graph that it is like.
        ends: Value that each layer in the graph writes for the next, by the layer.
        begins: Value that the first layer reads.
        weights: Tensors of the file.
    """

    stands: Sequence[int]
    ends: Mapping[int, str]
    begins: str
    weights: Weights

    def outputs(self, some: Mapping[str, Given]) -> dict[str, Given]:
        """Return what is known of all outputs, given that of the outputs of the graph."""
        found = {name: given for name, given in some.items() if not name.startswith("present.")}
        for index, stand in enumerate(self.stands):
            for kind in ("key", "value"):
                found[f"present.{index}.{kind}"] = some[f"present.{stand}.{kind}"]
        return found

    def whole(self, graph: Graph) -> Graph:
        """Return the graph with all layers, given the graph with one layer of each kind."""
        if len(self.ends) == len(self.stands):
            return graph
        parts = _Parts.of(graph, self.ends)
        renamed = {[*self.ends.values()][-1]: self._end(len(self.stands) - 1)}
        values = {name: graph.values[name] for name in parts.values[-1]}
        constants = {name: graph.constants[name] for name in parts.constants[-1]}
        known = {name: graph.known[name] for name in parts.known[-1]}
        nodes, after = parts.outside(graph)
        for index in range(len(self.stands)):
            copy = self._copy(index)
            stand = self.stands[index]
            nodes += [copy.node(node) for node in parts.nodes[stand]]
            for name in parts.values[stand]:
                value = copy.value(graph.values[name])
                values[value.name] = value
            for name in parts.constants[stand]:
                constants[copy.name(name)] = copy.constant(name, graph.constants[name])
            for name in parts.known[stand]:
                known[copy.name(name)] = graph.known[name]
        nodes += [_with_inputs(node, renamed) for node in after]
        return replace(
            graph,
            outputs=tuple(self.outputs(dict.fromkeys(graph.outputs))),
            values=values,
            nodes=tuple(nodes),
            constants=constants,
            known=known,
        )

    def _end(self, index: int) -> str:
        """Return the value that a layer of the model writes for the next."""
        if index < 0:
            return self.begins
        stand = self.stands[index]
        return f"blk.{index}.{self.ends[stand].removeprefix(f'blk.{stand}.')}"

    def _copy(self, index: int) -> "_Copy":
        stand = self.stands[index]
        before = [*self.ends].index(stand)
        read = [self.begins, *self.ends.values()][before]
        return _Copy(stand, index, {read: self._end(index - 1)}, self.weights)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Parts of a graph by layer; -1 for what belongs to none."""

    nodes: dict[int, list[Node]]
    values: dict[int, list[str]]
    constants: dict[int, list[str]]
    known: dict[int, list[str]]

    @staticmethod
    def of(graph: Graph, layers: Mapping[int, str]) -> "_Parts":
        beginnings = {kind.format(layer): layer for layer in layers for kind in KINDS}

        def layer_of(name: str) -> int:
            kind, _, rest = name.partition(".")
            number, dot, _ = rest.partition(".")
            return beginnings.get(f"{kind}.{number}{dot}", -1)

        def by_layer(names: Mapping[str, object]) -> dict[int, list[str]]:
            found: dict[int, list[str]] = {layer: [] for layer in (-1, *layers)}
            for name in names:
                found[layer_of(name)].append(name)
            return found

        nodes: dict[int, list[Node]] = {layer: [] for layer in (-1, *layers)}
        for node in graph.nodes:
            nodes[layer_of(node.outputs[0])].append(node)
        return _Parts(nodes, by_layer(graph.values), by_layer(graph.constants),
                      by_layer(graph.known))  # fmt: skip

    def outside(self, graph: Graph) -> tuple[list[Node], list[Node]]:
        """Return the nodes before the layers, and those after them."""
        first = next(node for layer, nodes in self.nodes.items() if layer >= 0 for node in nodes)
        place = graph.nodes.index(first)
        before = list(graph.nodes[:place])
        return before, self.nodes[-1][place:]


@dataclass(frozen=True, slots=True)
class _Copy:
    """Copy of a layer as another one."""

    stand: int
    index: int
    renamed: Mapping[str, str]
    weights: Weights
    names: dict[str, str] = field(default_factory=dict)

    def name(self, name: str) -> str:
        """Return what a value or node is called in the copy."""
        found = self.names.get(name)
        if found is None:
            found = self.names[name] = self.renamed.get(name) or self._counterpart(name)
        return found

    def _counterpart(self, name: str) -> str:
        for kind in KINDS:
            beginning = kind.format(self.stand)
            if name.startswith(beginning):
                return kind.format(self.index) + name[len(beginning) :]
        return name

    def node(self, node: Node) -> Node:
        """Return a node of the copy."""
        name = self.name
        return Node(
            name(node.name),
            node.operator,
            tuple(map(name, node.inputs)),
            tuple(map(name, node.outputs)),
            node.attributes,
            node.domain,
            node.version,
        )

    def value(self, value: Value) -> Value:
        """Return a value of the copy."""
        return Value(self.name(value.name), value.dtype, value.shape)

    def constant(self, name: str, constant: Constant) -> Constant:
        """Return a constant of the copy, whose tensor is the layer's own."""
        if name not in self.weights.nodes.stored:
            return constant
        return self.weights.stored(self.name(name))


def _with_inputs(node: Node, renamed: Mapping[str, str]) -> Node:
    return replace(node, inputs=tuple([renamed.get(name, name) for name in node.inputs]))
