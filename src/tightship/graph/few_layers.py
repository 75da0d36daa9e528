"""Equal layers of a network, of which a graph has few and the others are copies by name.

Passes may have rewritten the graph in the meantime: a layer is what has its name, or depends on its
tensors, its caches or its input. What layers share, such as a mask, stays where the first has it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tightship.graph.constant import Constant, Mapped
from tightship.graph.equal_runs import LayerRun
from tightship.graph.ir import Graph, Node, Value
from tightship.graph.mapped_file import MappedFile
from tightship.graph.moved_constant import ConstantMover

Given = TypeVar("Given")

KINDS = ("blk.{}.", "past_key_values.{}.", "present.{}.")
"""Beginnings of the names of a layer: its tensors and nodes, and its caches."""
SHARED = -1
"""Place of what no layer has alone."""


def place_in_layer(name: str) -> str:
    """Return a name without the beginning that a layer gives it; all of it if none does."""
    kind, _, rest = name.partition(".")
    return rest.partition(".")[2] if f"{kind}.{{}}." in KINDS else name


@dataclass(frozen=True, slots=True)
class FewLayers:
    """Layers of a network of which a graph has few.

    Attributes:
        stands: For each layer of the network, the one in the graph that it is like.
        ends: Value that each layer in the graph writes for the next, by the layer.
        begins: Value that the first layer reads.
        tensors: File and offset of each tensor, by its name.
    """

    stands: Sequence[int]
    ends: Mapping[int, str]
    begins: str
    tensors: Mapping[str, tuple[MappedFile, int]]
    located: Mapping[tuple[int, int], str] = field(init=False)
    """Tensors by the identity of the file, and offset."""

    def __post_init__(self) -> None:
        located = {(id(file), offset): name for name, (file, offset) in self.tensors.items()}
        object.__setattr__(self, "located", located)

    def outputs(self, some: Mapping[str, Given]) -> dict[str, Given]:
        """Return what is known of all outputs, given that of the outputs of the graph."""
        found = {name: given for name, given in some.items() if not name.startswith("present.")}
        for index, stand in enumerate(self.stands):
            for kind in ("key", "value"):
                found[f"present.{index}.{kind}"] = some[f"present.{stand}.{kind}"]
        return found

    def whole(self, graph: Graph) -> tuple[Graph, tuple[LayerRun, ...]]:
        """Return the graph with all layers, and which of them are copies of each other.

        Raises:
            NotMovedError: A constant cannot be made of another layer's tensors.
        """
        if len(self.ends) == len(self.stands):
            return replace(graph, layers=None), ()
        whole = _Whole(self, graph, _places(self, graph))
        whole.write()
        made = replace(
            graph, outputs=tuple(self.outputs(dict.fromkeys(graph.outputs))), values=whole.values,
            nodes=tuple(whole.nodes), constants=whole.constants, known=whole.known, layers=None,
        )  # fmt: skip
        return made, tuple(whole.runs)

    def end(self, index: int) -> str:
        """Return the value that a layer of the network writes for the next."""
        if index < 0:
            return self.begins
        stand = self.stands[index]
        return KINDS[0].format(index) + self.ends[stand].removeprefix(KINDS[0].format(stand))

    def read_by(self, stand: int) -> str:
        """Return the value that a layer in the graph reads of the one before it."""
        written = [*self.ends]
        place = len(written) if stand == len(self.stands) else written.index(stand)
        return [self.begins, *self.ends.values()][place]


def _places(layers: FewLayers, graph: Graph) -> list[int]:
    """Return the layer of each node of a graph; the number of all layers for what follows."""
    beginnings = {kind.format(layer): layer for layer in layers.ends for kind in KINDS}
    written = [*layers.ends, len(layers.stands)]
    next_of = dict(zip(layers.ends.values(), written[1:], strict=True))
    found = {layers.begins: written[0]}

    def of(name: str) -> int:
        kind, _, rest = name.partition(".")
        number, dot, _ = rest.partition(".")
        return beginnings.get(f"{kind}.{number}{dot}", SHARED)

    found.update({name: of(name) for name in (*graph.inputs, *graph.constants) if of(name) >= 0})
    places = []
    for node in graph.nodes:
        named = map(of, node.writes[:1])
        place = max([*named, *[found.get(name, SHARED) for name in node.reads]], default=SHARED)
        places.append(place)
        if place != SHARED:
            found.update({name: next_of.get(name, place) for name in node.writes})
    return places


@dataclass(slots=True)
class _Whole:
    """Graph of all layers under construction."""

    layers: FewLayers
    graph: Graph
    places: Sequence[int]
    nodes: list[Node] = field(default_factory=list)
    runs: list[LayerRun] = field(default_factory=list)
    values: dict[str, Value] = field(init=False)
    constants: dict[str, Constant] = field(init=False)
    known: dict[str, Constant] = field(init=False)

    def __post_init__(self) -> None:
        graph = self.graph
        self.values, self.constants, self.known = (
            dict(graph.values), dict(graph.constants), dict(graph.known)
        )  # fmt: skip

    def write(self) -> None:
        """Write the nodes of the graph, and copies behind the last of each layer."""
        layers, written = self.layers, [*self.layers.ends]
        last = {place: index for index, place in enumerate(self.places)}
        after = dict(zip(written, [*written[1:], len(layers.stands)], strict=True))
        for index, (node, place) in enumerate(zip(self.graph.nodes, self.places, strict=True)):
            if place != SHARED and (read := layers.read_by(place)) != layers.end(place - 1):
                node = _renamed(node, {read: layers.end(place - 1)})  # noqa: PLW2901
            self.nodes.append(node)
            if last.get(place) == index and place in after:
                self._copy(range(place + 1, after[place]))

    def _copy(self, indices: range) -> None:
        """Write consecutive layers that are copies, and note which are of one kind."""
        start = 0
        while start < len(indices):
            stand = self.layers.stands[indices[start]]
            stop = start
            while stop < len(indices) and self.layers.stands[indices[stop]] == stand:
                stop += 1
            self._copy_of(stand, indices[start:stop])
            start = stop

    def _copy_of(self, stand: int, indices: range) -> None:
        pairs = zip(self.graph.nodes, self.places, strict=True)
        nodes = [node for node, place in pairs if place == stand]
        parts = [part for node in nodes for part in (node, *node.fused)]
        names = [*dict.fromkeys(n for p in parts for n in (*p.inputs, *p.outputs) if n)]
        made = {name for part in parts for name in part.outputs}
        first, copies = len(self.nodes), []
        for index in indices:
            copy = _Copy.of(self.layers, (stand, index), names, made)
            copies.append(copy)
            self.nodes += [_renamed(node, copy.names, copy.node_name) for node in nodes]
            self._add(copy)
        fixed = {place for place, name in enumerate(names) if name in self.graph.constants}
        self.runs.append(LayerRun(
            first, len(nodes), tuple(tuple(copy.names.values()) for copy in copies),
            tuple(tuple([copy.node_name(part.name) for part in parts]) for copy in copies),
            tuple(p for p, name in enumerate(names) if name not in made and p not in fixed),
            tuple(sorted(fixed)),
        ))  # fmt: skip

    def _add(self, copy: "_Copy") -> None:
        """Add what is known of the values of a copy."""
        graph, mover = self.graph, ConstantMover(copy.tensor)
        for name, new in copy.names.items():
            if new == name:
                continue
            value = graph.values.get(name)
            if value is not None:
                self.values[new] = Value(new, value.dtype, value.shape)
            if name in graph.constants:
                self.constants[new] = mover.moved(graph.constants[name])
            elif name in graph.known:
                self.known[new] = mover.moved(graph.known[name])


@dataclass(frozen=True, slots=True)
class _Copy:
    """Names and tensors of a layer that is a copy of one in the graph.

    Attributes:
        layers: All layers.
        changed: Beginnings of names, with those of the copy.
        names: Names of values, with those of the copy.
    """

    layers: FewLayers
    changed: tuple[tuple[str, str], ...]
    names: Mapping[str, str]

    @staticmethod
    def of(
        layers: FewLayers, pair: tuple[int, int], names: Sequence[str], made: Collection[str]
    ) -> "_Copy":
        """Return the copy of a layer as another, given the names of its values and its own."""
        stand, index = pair
        changed = tuple((kind.format(stand), kind.format(index)) for kind in KINDS)
        found = {}
        for name in names:
            new = _counterpart(name, changed)
            found[name] = changed[0][1] + name if new == name and name in made else new
        read = layers.read_by(stand)
        if read in found:
            found[read] = layers.end(index - 1)
        return _Copy(layers, changed, found)

    def node_name(self, name: str) -> str:
        """Return what a node is called in the copy."""
        found = _counterpart(name, self.changed)
        return self.changed[0][1] + name if found == name else found

    def tensor(self, mapped: Mapped) -> Mapped:
        """Return the tensor of this layer in the place of one; the same for one of no layer."""
        name = self.layers.located.get((id(mapped.file), mapped.offset_bytes), "")
        twin = _counterpart(name, self.changed)
        if twin == name:
            return mapped
        file, offset = self.layers.tensors[twin]
        return Mapped(file, offset, mapped.dtype, mapped.shape)


def _counterpart(name: str, changed: Sequence[tuple[str, str]]) -> str:
    """Return a name with another beginning, if it has one that changes."""
    for before, after in changed:
        if name.startswith(before):
            return after + name[len(before) :]
    return name


def _renamed(
    node: Node, names: Mapping[str, str], node_name: Callable[[str], str] | None = None
) -> Node:
    """Rename the values of a node, and itself if a function for that is given."""

    def new(those: tuple[str, ...]) -> tuple[str, ...]:
        return tuple([names.get(each, each) for each in those])

    return Node(
        node.name if node_name is None else node_name(node.name),
        node.operator, new(node.inputs), new(node.outputs), node.attributes, node.domain,
        node.version, tuple([_renamed(part, names, node_name) for part in node.fused]),
    )  # fmt: skip
